"""
The paper's perplexity: that of a sampled softmax, as in the authors' code.

For each batch of 128 stories, classes are drawn without replacement from a log-uniform distribution over a vocabulary
that has the relation names between the special symbols and the words. The loss of a word is a softmax over itself and
the sampled classes, with logits corrected by the log expected count. The perplexity is far below the true one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from ..modeling.losses import expected_counts, log_uniform_probabilities, sample_unique

# Batches consist of stories in their order, however many are computed at a time.
PROTOCOL_BATCH_SIZE = 128
NUM_SPECIAL_SYMBOLS = 4
# Id of a relation name, which no word has.
RELATION_NAME = -1


@dataclass(frozen=True)
class SampledClasses:
    """
    Sampled classes of all batches under several seeds; the same for any number of processes.

    Args:
        ids: [seeds, batches, classes]; `RELATION_NAME` for relation names.
        num_tries: [seeds, batches]; draws with replacement until there were enough different classes.
        log_misses: [V]; log(1 - P(id)).
    """

    ids: torch.Tensor
    num_tries: torch.Tensor
    log_misses: torch.Tensor

    @classmethod
    def sample(
        cls,
        num_stories: int,
        num_words: int,
        num_classes: int,
        num_seeds: int,
        seed: int,
        num_relation_names: int = 0,
    ) -> SampledClasses:
        """Sample classes for the batches of `num_stories` stories; all classes, if there are not more."""
        num_batches = -(-num_stories // PROTOCOL_BATCH_SIZE)
        vocabulary = authors_vocabulary(num_words, num_relation_names)
        num_classes = min(num_classes, len(vocabulary))
        draws = [
            [
                sample_classes(np.random.default_rng([seed, run, batch]), len(vocabulary), num_classes)
                for batch in range(num_batches)
            ]
            for run in range(num_seeds)
        ]
        log_misses = torch.log1p(-log_uniform_probabilities(len(vocabulary)))
        return cls(
            ids=torch.tensor(np.array([[vocabulary[ids] for ids, _ in run] for run in draws])),
            num_tries=torch.tensor([[tries for _, tries in run] for run in draws], dtype=torch.float64),
            log_misses=log_misses[torch.tensor(vocabulary != RELATION_NAME)],
        )

    def to(self, device: torch.device) -> SampledClasses:
        """Move to a device."""
        return SampledClasses(self.ids.to(device), self.num_tries.to(device), self.log_misses.to(device))

    def losses(self, logits: torch.Tensor, targets: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """Return losses [seeds, N] from logits [N, V], targets [N] and the rows [N] of their stories."""
        batches = rows // PROTOCOL_BATCH_SIZE
        return torch.stack(
            [
                sampled_losses(logits, targets, ids[batches], num_tries[batches], self.log_misses)
                for ids, num_tries in zip(self.ids, self.num_tries, strict=True)
            ]
        )


def authors_vocabulary(num_words: int, num_relation_names: int) -> np.ndarray:
    """Return the word id of each entry [V + relation names] of the authors' vocabulary."""
    place = min(NUM_SPECIAL_SYMBOLS, num_words)
    return np.insert(np.arange(num_words), [place] * num_relation_names, RELATION_NAME)


def sample_classes(generator: np.random.Generator, num_words: int, num_classes: int) -> tuple[np.ndarray, int]:
    """Return the first `num_classes` different ids of a log-uniform sequence, and the length of the sequence."""
    ids, num_tries = sample_unique(num_words, num_classes, lambda size: torch.tensor(generator.random(size)))
    return ids.numpy(), num_tries


def sampled_losses(
    logits: torch.Tensor,
    targets: torch.Tensor,
    sampled: torch.Tensor,
    num_tries: torch.Tensor,
    log_misses: torch.Tensor,
) -> torch.Tensor:
    """
    Return the sampled-softmax losses [N].

    Args:
        logits: [N, V].
        targets: [N].
        sampled: Sampled classes [N, M]. The target and relation names among them are ignored.
        num_tries: [N]; draws until the classes were sampled.
        log_misses: [V]; log(1 - P(id)).
    """
    is_ignored = (sampled == targets.unsqueeze(1)) | (sampled == RELATION_NAME)
    candidates = torch.cat((targets.unsqueeze(1), sampled.clamp(min=0)), dim=1)
    expected = expected_counts(log_misses[candidates], num_tries.unsqueeze(1))
    corrected = logits.gather(1, candidates) - expected.log().to(logits.dtype)
    corrected[:, 1:] = corrected[:, 1:].masked_fill(is_ignored, -torch.inf)
    return corrected.logsumexp(dim=1) - corrected[:, 0]


def sampled_perplexities(losses: np.ndarray, num_words: np.ndarray) -> np.ndarray:
    """
    Return the perplexity [seeds]: the exponential of the mean over batches of the mean over a batch's words.

    Args:
        losses: [stories, seeds]; summed over the words of a story.
        num_words: [stories].
    """
    starts = np.arange(0, len(num_words), PROTOCOL_BATCH_SIZE)
    means = np.add.reduceat(losses, starts, axis=0) / np.add.reduceat(num_words, starts)[:, None]
    return np.exp(means.mean(axis=0))
