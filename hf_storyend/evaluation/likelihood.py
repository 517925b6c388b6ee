"""Metrics of the likelihood that a model gives to endings: perplexity and Story Cloze accuracy."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from datasets import Dataset, DatasetDict
from torch import nn
from torch.nn import functional

from ..data.batching import tokenise_stories
from ..data.stories import STORY_FEATURES
from ..modeling import IncrementalEncoderTokenizer
from ..modeling.copying import merge_oov_logits
from ..modeling.losses import IGNORED
from .distributed import Batch, map_stories
from .sampled_perplexity import SampledClasses, sampled_perplexities
from .text_metrics import Ratio


@dataclass(frozen=True)
class Likelihood:
    """
    Negative log likelihood of one ending.

    Args:
        loss: Sum of -log P over the words, end symbol included.
        num_words: Number of these words.
        sampled_losses: The same sum under sampled softmaxes, one for each seed.
    """

    loss: float
    num_words: int
    sampled_losses: list[float]


def batch_likelihoods(
    model: Any, batch: Batch, rows: list[int], sampled_classes: SampledClasses | None = None
) -> list[Likelihood]:
    """Compute the likelihoods of the `labels` of a batch, whose stories are these rows of the split."""
    logits, targets, stories = _target_logits(model, batch)
    losses = functional.cross_entropy(logits, targets, reduction="none").unsqueeze(0)
    if sampled_classes is not None:
        row_of_word = torch.tensor(rows, device=stories.device)[stories]
        losses = torch.cat((losses, sampled_classes.losses(logits, targets, row_of_word)))
    sums = losses.new_zeros(losses.shape[0], len(rows), dtype=torch.float64).index_add(1, stories, losses.double())
    num_words = stories.bincount(minlength=len(rows)).tolist()
    return [
        Likelihood(loss, count, sampled) for (loss, *sampled), count in zip(sums.T.tolist(), num_words, strict=True)
    ]


def batch_word_losses(model: Any, batch: Batch) -> list[np.ndarray]:
    """Compute for each story of a batch -log P of the words of its ending, end symbol included."""
    logits, targets, stories = _target_logits(model, batch)
    losses = functional.cross_entropy(logits, targets, reduction="none").double()
    counts = stories.bincount(minlength=len(batch["labels"])).tolist()
    return [own.numpy() for own in losses.cpu().split(counts)]


def _target_logits(model: Any, batch: Batch) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return logits [N, V], targets [N] and places in the batch [N] of all words of the endings."""
    inputs = dict(batch)
    labels = inputs.pop("labels")
    # Without `labels` the model skips the loss on the context.
    decoder_input_ids = model.prepare_decoder_input_ids_from_labels(labels)
    all_logits = model(**inputs, decoder_input_ids=decoder_input_ids, use_cache=False).logits
    stories, places = (labels != IGNORED).nonzero(as_tuple=True)
    logits, targets = all_logits[stories, places], labels[stories, places]
    logits = logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits
    if model.config.copy:
        # Comparable with systems that can't copy: every out-of-vocabulary word counts as the unknown token.
        vocab_size, unknown = model.config.vocab_size, model.config.unk_token_id
        logits = merge_oov_logits(logits, vocab_size, unknown)
        targets = targets.masked_fill(targets >= vocab_size, unknown)
    return logits, targets, stories


def perplexity_ratio(likelihoods: list[Likelihood]) -> Ratio:
    """Return the true perplexity as a ratio of sums over stories."""
    losses, num_words, _ = _as_arrays(likelihoods)
    return Ratio(losses, num_words, is_logarithm=True)


def sampled_metrics(likelihoods: list[Likelihood]) -> dict[str, float]:
    """Return mean and standard deviation of the sampled perplexity over seeds; empty without sampled losses."""
    _, num_words, sampled_losses = _as_arrays(likelihoods)
    if not sampled_losses.size:
        return {}
    perplexities = sampled_perplexities(sampled_losses, num_words)
    deviation = perplexities.std(ddof=1) if len(perplexities) > 1 else 0.0
    return {"sampled_perplexity": float(perplexities.mean()), "sampled_perplexity_std": float(deviation)}


def _as_arrays(likelihoods: list[Likelihood]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return losses [stories], numbers of words [stories] and sampled losses [stories, seeds]."""
    return (
        np.array([one.loss for one in likelihoods]),
        np.array([one.num_words for one in likelihoods], dtype=np.float64),
        np.array([one.sampled_losses for one in likelihoods]),
    )


def cloze_accuracy(
    model: nn.Module,
    tokenizer: IncrementalEncoderTokenizer,
    questions: Dataset,
    *,
    accelerator: Accelerator | None = None,
    batch_size: int = 128,
) -> dict[str, float]:
    """
    Measure accuracy on the Story Cloze Test: how often the right one of two endings is the likelier one.

    Args:
        model: The model, bare or wrapped.
        tokenizer: Its tokenizer.
        questions: Questions from `load_story_cloze`.
        accelerator: Shares the questions out to its processes.
        batch_size: Endings in a batch, over all processes.

    Returns:
        `cloze_accuracy` by the sum of the words' log likelihoods, `cloze_accuracy_normalised` by their mean, both in
        percent. Ties count half.
    """
    if not len(questions):
        raise ValueError("`questions` is empty: there is nothing to answer.")
    contexts, endings = list(questions["context"]), [*questions["ending1"], *questions["ending2"]]
    stories = Dataset.from_dict({"context": contexts * 2, "ending": endings}, features=STORY_FEATURES)
    # One process tokenises, the others then read its cache.
    with accelerator.main_process_first() if accelerator else nullcontext():
        tokenised = tokenise_stories(DatasetDict({"cloze": stories}), tokenizer)["cloze"]
    likelihoods = map_stories(
        batch_likelihoods, model, tokenizer, tokenised, batch_size=batch_size, accelerator=accelerator
    )
    losses, num_words = (array.reshape(2, -1) for array in _as_arrays(likelihoods)[:2])
    right = np.array(questions["right"])
    return {
        "cloze_accuracy": _accuracy(losses, right),
        "cloze_accuracy_normalised": _accuracy(losses / num_words, right),
    }


def _accuracy(losses: np.ndarray, right: np.ndarray) -> float:
    """Compute accuracy from losses [2, questions] of the endings and the numbers, 1 or 2, of the right ones."""
    margin = np.where(right == 1, losses[1] - losses[0], losses[0] - losses[1])
    return float(100 * np.mean((np.sign(margin) + 1) / 2))
