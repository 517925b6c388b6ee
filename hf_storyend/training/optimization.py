"""Which stories each update reads: the same ones in the same order, whoever shares the work, wherever it resumes."""

from __future__ import annotations

import math
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import send_to_device
from datasets import Dataset
from torch import nn
from torch.utils.data import DataLoader

from ..data.collator import LengthBuckets, StoryCollator
from .options import TrainingOptions


@dataclass
class ModernRecipe:
    """AdamW; the rate rises during the warm-up and falls along a cosine to a hundredth."""

    learning_rate: float = 2e-3
    warmup_ratio: float = 0.02
    weight_decay: float = 0.01

    def optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        """AdamW; word vectors and biases do not decay."""
        vectors = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
        parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        decaying = [parameter for parameter in parameters if parameter.ndim > 1 and id(parameter) not in vectors]
        kept = {id(parameter) for parameter in decaying}
        groups = [
            {"params": decaying, "weight_decay": self.weight_decay},
            {"params": [parameter for parameter in parameters if id(parameter) not in kept], "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(groups, lr=self.learning_rate)

    def rate(self, progress: float) -> float:
        """Learning rate when this share of the run, from 0 to 1, is done."""
        if progress < self.warmup_ratio:
            return self.learning_rate * max(progress / self.warmup_ratio, 0.01)
        rest = (progress - self.warmup_ratio) / (1 - self.warmup_ratio)
        return self.learning_rate * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * min(rest, 1.0))))

    def epoch_ended(self, loss: float) -> None:
        """The rate follows the run's length, not its losses."""

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """There is nothing to remember."""


@dataclass
class PaperRecipe:
    """Momentum 0.9; the rate is multiplied by 0.95 when an epoch's loss is worse than the last three."""

    learning_rate: float = 0.1
    decay: float = 0.95
    memory: int = 3
    current: float = field(init=False)
    losses: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.current = self.learning_rate

    def optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        """Stochastic gradient descent with momentum."""
        return torch.optim.SGD(model.parameters(), lr=self.learning_rate, momentum=0.9)

    def rate(self, progress: float) -> float:
        """Learning rate now."""
        return self.current

    def epoch_ended(self, loss: float) -> None:
        """Compare an epoch's mean loss with those of the epochs before it."""
        if len(self.losses) >= self.memory and loss > max(self.losses[-self.memory :]):
            self.current *= self.decay
        self.losses.append(loss)

    def state_dict(self) -> dict[str, Any]:
        return {"current": self.current, "losses": self.losses}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.current, self.losses = float(state["current"]), list(state["losses"])


Recipe = ModernRecipe | PaperRecipe


def build_recipe(options: TrainingOptions) -> Recipe:
    """The recipe of the options, with its own numbers where the options name none."""
    given = {name: getattr(options, name) for name in ("learning_rate", "warmup_ratio", "weight_decay")}
    given = {name: value for name, value in given.items() if value is not None}
    return PaperRecipe(**given) if options.recipe == "paper" else ModernRecipe(**given)


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
