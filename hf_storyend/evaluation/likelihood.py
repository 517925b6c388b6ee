"""How likely a model finds endings: true and sampled-softmax losses of each story."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from ..modeling.copying import merge_slots
from ..modeling.losses import IGNORED
from .ratios import Ratio
from .sampled_softmax import Negatives, sampled_perplexities


@dataclass(frozen=True)
class Likelihood:
    """Of one ending: the sum of -log P over its words, end symbol included, and under sampled softmaxes."""

    loss: float
    num_words: int
    sampled_losses: list[float]


def batch_likelihoods(
    model: Any, batch: dict[str, torch.Tensor], rows: list[int], negatives: Negatives | None
) -> list[Likelihood]:
    """Likelihoods of the `labels` of a batch whose stories are these rows."""
    batch = dict(batch)
    labels = batch.pop("labels")
    # Without labels the model need not compute the losses of the context's sentences.
    inputs = model.prepare_decoder_input_ids_from_labels(labels)
    logits = model(**batch, decoder_input_ids=inputs, use_cache=False).logits
    stories, places = (labels != IGNORED).nonzero(as_tuple=True)
    targets = labels[stories, places]
    scores = logits[stories, places]
    scores = scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores
    if model.config.copy:
        # To be compared with systems that can't copy, an unknown word counts as such whichever it is.
        vocab_size, unknown = model.config.vocab_size, model.config.unk_token_id
        scores = merge_slots(scores, vocab_size, unknown)
        targets = targets.masked_fill(targets >= vocab_size, unknown)
    losses = functional.cross_entropy(scores, targets, reduction="none").unsqueeze(0)
    if negatives is not None:
        row_of_word = torch.tensor(rows, device=labels.device)[stories]
        losses = torch.cat((losses, negatives.losses(scores, targets, row_of_word)))
    sums = losses.new_zeros(losses.shape[0], len(rows), dtype=torch.float64).index_add(1, stories, losses.double())
    num_words = stories.bincount(minlength=len(rows)).tolist()
    return [
        Likelihood(loss, count, sampled) for (loss, *sampled), count in zip(sums.T.tolist(), num_words, strict=True)
    ]


def perplexity_ratio(likelihoods: list[Likelihood]) -> Ratio:
    """The true perplexity, as a ratio of sums over stories."""
    return Ratio(
        np.array([one.loss for one in likelihoods]),
        np.array([one.num_words for one in likelihoods], dtype=np.float64),
        is_logarithm=True,
    )


def sampled_metrics(likelihoods: list[Likelihood]) -> dict[str, float]:
    """Mean and standard deviation over the seeds of the sampled-softmax perplexity; nothing where none was drawn."""
    if not likelihoods[0].sampled_losses:
        return {}
    perplexities = sampled_perplexities(
        np.array([one.sampled_losses for one in likelihoods]),
        np.array([one.num_words for one in likelihoods], dtype=np.float64),
    )
    spread = perplexities.std(ddof=1) if len(perplexities) > 1 else 0.0
    return {"sampled_perplexity": float(perplexities.mean()), "sampled_perplexity_std": float(spread)}
