"""Which stories each update reads: the same ones in the same order, whoever shares the work, wherever it resumes."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import send_to_device
from datasets import Dataset
from torch import nn
from torch.utils.data import DataLoader

from ..data.batching import LengthBuckets
from ..data.tokenised import StoryCollator


@dataclass
class Update:
    """One step of the optimiser: the batches of this process and how many stories all processes read."""

    tensors: list[dict[str, Any]]
    num_stories: int
    rows: list[list[int]]
    model: nn.Module
    accelerator: Accelerator

    def batches(self) -> Iterator[dict[str, Any]]:
        """
        The batches, ready for `model(**batch)`. Gradients add up over them; those of other processes are asked for at
        the last one only.
        """
        for batch in self.tensors[:-1]:
            with self.accelerator.no_sync(self.model):
                yield batch
        yield self.tensors[-1]


class UpdatePlan:
    """
    Deals the stories of an epoch out to updates, batches and processes.

    A global batch has `per_device_batch_size` stories a process; `accumulation` of them make an update. What a batch
    holds depends on the seed, the epoch and the size of the global batch, not on the number of processes.
    """

    def __init__(
        self,
        tokenised: Dataset,
        collator: StoryCollator,
        accelerator: Accelerator,
        *,
        per_device_batch_size: int,
        accumulation: int,
        seed: int,
        num_workers: int = 0,
    ):
        self.tokenised, self.collator, self.accelerator = tokenised, collator, accelerator
        self.accumulation, self.num_workers = accumulation, num_workers
        global_batch_size = per_device_batch_size * accelerator.num_processes
        self.buckets = LengthBuckets(tokenised["length"], global_batch_size, seed=seed)
        # An update's loss is divided by its number of ending words, known here without asking other processes.
        self.ending_lengths = np.fromiter(map(len, tokenised["labels"]), dtype=np.int64, count=len(tokenised))

    @property
    def updates_per_epoch(self) -> int:
        num_batches = -(-len(self.tokenised) // self.buckets.batch_size)
        return -(-num_batches // self.accumulation)

    def updates(self, model: nn.Module, epoch: int, num_skipped: int = 0) -> Iterator[Update]:
        """The updates of an epoch from its update `num_skipped` on."""
        self.buckets.set_epoch(epoch)
        batches = self.buckets.global_batches()[num_skipped * self.accumulation :]
        shares = [self._share(batch) for batch in batches]
        loader = iter(
            DataLoader(
                self.tokenised,  # type: ignore[arg-type]
                batch_sampler=shares,
                collate_fn=self.collator,
                num_workers=self.num_workers,
                worker_init_fn=_leave_signals_to_the_run,
                pin_memory=self.accelerator.device.type == "cuda",
            )
        )
        for start in range(0, len(batches), self.accumulation):
            group = batches[start : start + self.accumulation]
            tensors = [self._batch(next(loader), batch, group) for batch in group]
            rows = shares[start : start + self.accumulation]
            yield Update(tensors, sum(map(len, group)), rows, model, self.accelerator)

    def _share(self, batch: list[int]) -> list[int]:
        share = batch[self.accelerator.process_index :: self.accelerator.num_processes]
        # A process without a story must take part all the same; what it reads will weigh nothing.
        return share or batch[:1]

    def _batch(self, tensors: dict[str, torch.Tensor], batch: list[int], group: list[list[int]]) -> dict[str, Any]:
        num_words = sum(int(self.ending_lengths[rows].sum()) for rows in group)
        # Gradients are averaged over processes, so each divides by its share of the words.
        share = num_words / self.accelerator.num_processes
        if self.accelerator.process_index >= len(batch):
            share = float("inf")
        on_device = send_to_device(tensors, self.accelerator.device, non_blocking=True)
        return {**on_device, "num_items_in_batch": share}


def _leave_signals_to_the_run(worker: int) -> None:
    """Ctrl-C reaches every process of a terminal; the run needs its workers until it has saved itself."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
