"""Batches of stories of like length, the same ones however many processes share the work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

# Stories are sorted by length within pools of so many batches: enough for little padding, few enough to stay random.
_POOL = 50


class LengthBuckets:
    """
    Batch sampler: seeded, by length, and dealt out to processes so that each does the same work.

    An epoch is shuffled, cut into pools, sorted by length inside each pool and cut into batches, which are shuffled
    again. A batch of `batch_size` stories is one step of all processes together: process p takes every
    `num_processes`-th story from place p on, so that neighbours in length, and thus equal work, go to different
    processes, and the stories of a step do not depend on how many processes there are.

    Args:
        lengths (`Sequence[int]`): Length of each story: best that of its longest sentence, which decides the padding.
        batch_size (`int`): Stories in a step, all processes together; a multiple of `num_processes`.
        seed (`int`, *optional*, defaults to 0): Together with the epoch it decides the order.
        shuffle (`bool`, *optional*, defaults to `True`): Without it, stories come by length, always in one order.
        num_processes, process_index (`int`, *optional*): Which share of each batch to give.
    """

    def __init__(
        self,
        lengths: Sequence[int],
        batch_size: int,
        *,
        seed: int = 0,
        shuffle: bool = True,
        num_processes: int = 1,
        process_index: int = 0,
    ):
        if batch_size < 1 or batch_size % num_processes:
            raise ValueError(f"`batch_size` must be a multiple of {num_processes} processes; got {batch_size}.")
        if not 0 <= process_index < num_processes:
            raise ValueError(f"`process_index` must be below `num_processes` ({num_processes}); got {process_index}.")
        if not len(lengths):
            raise ValueError("There is no story to make batches of: `lengths` is empty.")
        self.lengths = torch.as_tensor(lengths)
        self.batch_size = batch_size
        self.seed = seed
        self.shuffle = shuffle
        self.num_processes = num_processes
        self.process_index = process_index
        self.epoch = 0
        self.num_skipped = 0

    def set_epoch(self, epoch: int, num_skipped: int = 0) -> None:
        """The order of this epoch from its batch `num_skipped` on: where an interrupted run goes on."""
        self.epoch, self.num_skipped = epoch, num_skipped

    def __len__(self) -> int:
        return -(-len(self.lengths) // self.batch_size) - self.num_skipped

    def __iter__(self) -> Iterator[list[int]]:
        for batch in self.global_batches()[self.num_skipped :]:
            yield self._share(batch)

    def global_batches(self) -> list[list[int]]:
        """All batches of the epoch, for all processes together; the last one drawn may be smaller."""
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + self.epoch)
        num_stories = len(self.lengths)
        order = torch.randperm(num_stories, generator=generator) if self.shuffle else torch.arange(num_stories)
        pool_size = self.batch_size * (_POOL if self.shuffle else num_stories)
        batches: list[list[int]] = []
        for pool in order.split(pool_size):
            by_length = pool[self.lengths[pool].argsort(stable=True)]
            batches += [batch.tolist() for batch in by_length.split(self.batch_size)]
        if not self.shuffle:
            return batches
        return [batches[row] for row in torch.randperm(len(batches), generator=generator).tolist()]

    def _share(self, batch: list[int]) -> list[int]:
        if len(batch) < self.num_processes:
            # Every process must take the step: stories are given twice rather than none to someone.
            batch = (batch * self.num_processes)[: self.num_processes]
        return batch[self.process_index :: self.num_processes]


def padding_share(stories: Sequence[Sequence[Sequence[int]]], batches: Sequence[Sequence[int]]) -> float:
    """Share of the word places of all batches, padded to [stories, sentences, words], that hold no word."""
    places = words = 0
    for batch in batches:
        rows = [stories[row] for row in batch]
        words += sum(len(sentence) for story in rows for sentence in story)
        longest = max(len(sentence) for story in rows for sentence in story)
        places += len(rows) * max(map(len, rows)) * longest
    return 1 - words / places
