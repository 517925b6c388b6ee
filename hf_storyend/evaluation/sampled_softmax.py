"""
The perplexity of the paper's own code: a softmax over the target and a few hundred sampled words, not over all.

As TensorFlow's `sampled_softmax_loss` computes it: the negatives of a batch are drawn from a log-uniform distribution
over ids (which therefore must stand by falling frequency) until there are enough different ones; every logit, that of
the target too, is lowered by the logarithm of how often its word was to be expected among them; a negative that is the
target does not count. Rare targets gain by that correction, so the figure is far below the true perplexity.

In the authors' vocabulary the names of ConceptNet's 45 relations stand between the special symbols and the words. They
are drawn more often than any word and are never a target, so that a trained model gives them nothing: the same model
has a lower figure with them than without. To be comparable they are counted here, too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from ..modeling.drawn_words import draw_different, expected_counts, log_uniform_probabilities

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
