"""How likely a model finds endings: true and sampled-softmax losses of each story."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from ..modeling.copying import merge_slots
from ..modeling.drawn_words import draw_different, expected_counts, log_uniform_probabilities
from ..modeling.losses import IGNORED
from .metrics import Ratio

# The batches of the protocol are made of stories in their order, however many are computed at a time.
PROTOCOL_BATCH_SIZE = 128
NUM_SPECIAL_SYMBOLS = 4
# What a relation name is among ids of words.
NO_WORD = -1


def draw_negatives(generator: np.random.Generator, num_words: int, num_negatives: int) -> tuple[np.ndarray, int]:
    """The first `num_negatives` different ids of a log-uniform sequence, and how long the sequence was."""
    ids, num_tries = draw_different(num_words, num_negatives, lambda size: torch.tensor(generator.random(size)))
    return ids.numpy(), num_tries


def authors_vocabulary(num_words: int, num_relation_names: int) -> np.ndarray:
    """[V + relation names]: the word id of each entry of such a vocabulary, NO_WORD at relation names."""
    return np.insert(np.arange(num_words), [min(NUM_SPECIAL_SYMBOLS, num_words)] * num_relation_names, NO_WORD)


@dataclass(frozen=True)
class Negatives:
    """Negatives of all batches of the protocol under several seeds; the same for any number of processes."""

    ids: torch.Tensor  # [seeds, batches, negatives], NO_WORD at relation names
    num_tries: torch.Tensor  # [seeds, batches]
    log_misses: torch.Tensor  # [V]: log(1 - P(id))

    @classmethod
    def draw(
        cls,
        num_stories: int,
        num_words: int,
        num_negatives: int,
        num_seeds: int,
        seed: int,
        num_relation_names: int = 0,
    ) -> Negatives:
        """For stories in their order; where there are fewer words than negatives, every word is one."""
        num_batches = -(-num_stories // PROTOCOL_BATCH_SIZE)
        words = authors_vocabulary(num_words, num_relation_names)
        size = min(num_negatives, len(words))
        drawn = [
            [
                draw_negatives(np.random.default_rng([seed, run, batch]), len(words), size)
                for batch in range(num_batches)
            ]
            for run in range(num_seeds)
        ]
        log_misses = torch.log1p(-log_uniform_probabilities(len(words)))
        return cls(
            ids=torch.tensor(np.array([[words[ids] for ids, _ in run] for run in drawn])),
            num_tries=torch.tensor([[tries for _, tries in run] for run in drawn], dtype=torch.float64),
            log_misses=log_misses[torch.tensor(words != NO_WORD)],
        )

    def to(self, device: torch.device) -> Negatives:
        """The same on another device."""
        return Negatives(self.ids.to(device), self.num_tries.to(device), self.log_misses.to(device))

    def losses(self, logits: torch.Tensor, targets: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """Losses [seeds, N] of words with logits [N, V], targets [N] and the rows [N] of the stories they are in."""
        batches = rows // PROTOCOL_BATCH_SIZE
        return torch.stack(
            [
                sampled_losses(logits, targets, ids[batches], num_tries[batches], self.log_misses)
                for ids, num_tries in zip(self.ids, self.num_tries, strict=True)
            ]
        )


def sampled_losses(
    logits: torch.Tensor, targets: torch.Tensor, negatives: torch.Tensor, tries: torch.Tensor, log_misses: torch.Tensor
) -> torch.Tensor:
    """
    Losses [N] from logits [N, V], targets [N], negatives [N, M], the lengths [N] of the sequences that they were drawn
    in, and log(1 - P) [V].
    """
    counts_not = (negatives == targets.unsqueeze(1)) | (negatives == NO_WORD)
    candidates = torch.cat((targets.unsqueeze(1), negatives.clamp(min=0)), dim=1)
    # What is drawn until enough are different holds an id with this probability: its expected count.
    expected = expected_counts(log_misses[candidates], tries.unsqueeze(1))
    scores = logits.gather(1, candidates) - expected.log().to(logits.dtype)
    scores[:, 1:] = scores[:, 1:].masked_fill(counts_not, -torch.inf)
    return scores.logsumexp(dim=1) - scores[:, 0]


def sampled_perplexities(losses: np.ndarray, num_words: np.ndarray) -> np.ndarray:
    """
    Perplexity under each seed from the stories' sums of losses [stories, seeds] and numbers of words [stories]: exp
    of the mean over batches of the mean over a batch's words.
    """
    starts = np.arange(0, len(num_words), PROTOCOL_BATCH_SIZE)
    means = np.add.reduceat(losses, starts, axis=0) / np.add.reduceat(num_words, starts)[:, None]
    return np.exp(means.mean(axis=0))


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
