"""Batches of each update: the same stories in the same order for any number of processes, and after resuming."""

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

from ..data.batching import LengthGroupedBatchSampler, StoryCollator


@dataclass
class Update:
    """
    One optimizer step.

    Attributes:
        tensors: Batches of this process.
        num_stories: Stories of all processes.
        rows: Dataset rows of each batch.
        model: The model to train, as Accelerate prepared it.
        accelerator: The `Accelerator`.
    """

    tensors: list[dict[str, Any]]
    num_stories: int
    rows: list[list[int]]
    model: nn.Module
    accelerator: Accelerator

    def batches(self) -> Iterator[dict[str, Any]]:
        """Yield batches for `model(**batch)`; gradients are synchronised across processes at the last one only."""
        for batch in self.tensors[:-1]:
            with self.accelerator.no_sync(self.model):
                yield batch
        yield self.tensors[-1]


class UpdateLoader:
    """
    Distributes the stories of an epoch over updates, batches and processes.

    A global batch has `per_device_batch_size` stories per process; `accumulation_steps` of them make an update. The
    content of a global batch depends on the seed, the epoch and its size, not on the number of processes.
    """

    def __init__(
        self,
        tokenised: Dataset,
        collator: StoryCollator,
        accelerator: Accelerator,
        *,
        per_device_batch_size: int,
        accumulation_steps: int,
        seed: int,
        num_workers: int = 0,
    ):
        self.tokenised, self.collator, self.accelerator = tokenised, collator, accelerator
        self.accumulation_steps, self.num_workers = accumulation_steps, num_workers
        global_batch_size = per_device_batch_size * accelerator.num_processes
        self.sampler = LengthGroupedBatchSampler(tokenised["length"], global_batch_size, seed=seed)
        # An update's loss is divided by its number of ending tokens, known here without communication.
        self.ending_lengths = np.fromiter(map(len, tokenised["labels"]), dtype=np.int64, count=len(tokenised))

    @property
    def updates_per_epoch(self) -> int:
        num_batches = -(-len(self.tokenised) // self.sampler.batch_size)
        return -(-num_batches // self.accumulation_steps)

    def updates(self, model: nn.Module, epoch: int, num_skipped: int = 0) -> Iterator[Update]:
        """Yield the updates of an epoch without the first `num_skipped`."""
        self.sampler.set_epoch(epoch)
        batches = self.sampler.global_batches()[num_skipped * self.accumulation_steps :]
        shares = [self._share(batch) for batch in batches]
        loader = iter(
            DataLoader(
                self.tokenised,  # type: ignore[arg-type]
                batch_sampler=shares,
                collate_fn=self.collator,
                num_workers=self.num_workers,
                worker_init_fn=_ignore_stop_signals,
                pin_memory=self.accelerator.device.type == "cuda",
            )
        )
        for start in range(0, len(batches), self.accumulation_steps):
            group = batches[start : start + self.accumulation_steps]
            tensors = [self._to_device(next(loader), batch, group) for batch in group]
            rows = shares[start : start + self.accumulation_steps]
            yield Update(tensors, sum(map(len, group)), rows, model, self.accelerator)

    def _share(self, batch: list[int]) -> list[int]:
        share = batch[self.accelerator.process_index :: self.accelerator.num_processes]
        # Every process takes part in every batch; a process without a story of its own gets one of weight zero.
        return share or batch[:1]

    def _to_device(self, tensors: dict[str, torch.Tensor], batch: list[int], group: list[list[int]]) -> dict[str, Any]:
        num_tokens = sum(int(self.ending_lengths[rows].sum()) for rows in group)
        # Gradients are averaged over processes, so each divides by its share of the tokens.
        num_items = num_tokens / self.accelerator.num_processes
        if self.accelerator.process_index >= len(batch):
            num_items = float("inf")
        on_device = send_to_device(tensors, self.accelerator.device, non_blocking=True)
        return {**on_device, "num_items_in_batch": num_items}


def _ignore_stop_signals(worker: int) -> None:
    """Ctrl-C reaches every process of a terminal; the run needs its workers until the checkpoint is written."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
