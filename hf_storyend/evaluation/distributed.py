"""Sharing the stories out to processes and bringing the results together, the same for any number of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from accelerate import Accelerator
from accelerate.utils import extract_model_from_parallel
from datasets import Dataset
from torch import nn
from tqdm.auto import tqdm

from ..data.collator import LengthBuckets, StoryCollator
from ..modeling import IncrementalEncoderTokenizer

Result = TypeVar("Result")
Batch = dict[str, torch.Tensor]


def map_stories(
    work: Callable[[Any, Batch, list[int]], list[Result]],
    model: nn.Module,
    tokenizer: IncrementalEncoderTokenizer,
    tokenised: Dataset,
    *,
    batch_size: int,
    accelerator: Accelerator | None = None,
    seed: int = 0,
) -> list[Result]:
    """
    `work(model, batch, rows)` for all stories in batches, shared by the processes: on each of them, the results of
    all stories in order. Meanwhile the model is bare and evaluating; afterwards it and all random generators are as
    they were.
    """
    collate = StoryCollator(tokenizer)
    batches = _batches(tokenised, batch_size, accelerator)
    is_quiet = True if accelerator is not None and not accelerator.is_main_process else None
    results: dict[int, Result] = {}
    with _inference(model, seed) as bare:
        device = next(bare.parameters()).device
        for rows in tqdm(batches, desc="Evaluating", unit="batch", disable=is_quiet, leave=False):
            batch = {name: tensor.to(device) for name, tensor in collate([tokenised[row] for row in rows]).items()}
            results.update(zip(rows, work(bare, batch, rows), strict=True))
    return _gather(results, accelerator)


def _batches(tokenised: Dataset, batch_size: int, accelerator: Accelerator | None) -> LengthBuckets:
    """This process's share of batches of like length, as rows."""
    num_processes = accelerator.num_processes if accelerator else 1
    return LengthBuckets(
        tokenised["length"],
        # Every process takes part in every batch.
        -(-batch_size // num_processes) * num_processes,
        shuffle=False,
        num_processes=num_processes,
        process_index=accelerator.process_index if accelerator else 0,
    )


def _gather(results: dict[int, Result], accelerator: Accelerator | None) -> list[Result]:
    """The results of all processes by row; a row that two of them computed counts once."""
    pairs = list(results.items())
    if accelerator is not None and accelerator.num_processes > 1:
        pairs = accelerator.gather_for_metrics(pairs, use_gather_object=True)
    by_row = dict(pairs)
    return [by_row[row] for row in range(len(by_row))]


@contextmanager
def _inference(model: nn.Module, seed: int) -> Iterator[Any]:
    bare = extract_model_from_parallel(model)
    device = next(bare.parameters()).device
    modes = [(module, module.training) for module in bare.modules()]
    bare.eval()
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(seed)
            yield bare
    finally:
        for module, was_training in modes:
            module.training = was_training
