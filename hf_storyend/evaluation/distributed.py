"""Distributed inference: processes share the stories; the result is the same for any number of processes."""

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

from ..data.batching import LengthGroupedBatchSampler, StoryCollator
from ..modeling import IncrementalEncoderTokenizer

Result = TypeVar("Result")
Batch = dict[str, torch.Tensor]


def map_stories(
    function: Callable[[Any, Batch, list[int]], list[Result]],
    model: nn.Module,
    tokenizer: IncrementalEncoderTokenizer,
    tokenised: Dataset,
    *,
    batch_size: int,
    accelerator: Accelerator | None = None,
    seed: int = 0,
    description: str = "Evaluating",
) -> list[Result]:
    """
    Call `function(model, batch, rows)` for batches of all stories.

    Meanwhile the model is unwrapped and in evaluation mode, without gradients; afterwards its modes and torch's random
    state are restored.

    Args:
        function: Returns a result for each row of the batch.
        model: The model, bare or wrapped.
        tokenizer: Its tokenizer, which pads the batches.
        tokenised: Stories from `tokenise_stories`.
        batch_size: Stories in a batch, over all processes.
        accelerator: Shares the batches out to its processes; without it, this process computes all.
        seed: Seed of torch's generator.
        description: Text before the progress bar.

    Returns:
        The results of all stories in their order, on every process.
    """
    collate = StoryCollator(tokenizer)
    batches = _batches_of_process(tokenised, batch_size, accelerator)
    hides_progress = True if accelerator is not None and not accelerator.is_main_process else None
    results: dict[int, Result] = {}
    with _inference_mode(model, seed) as unwrapped:
        device = next(unwrapped.parameters()).device
        for rows in tqdm(batches, desc=description, unit="batch", disable=hides_progress, leave=False):
            batch = {name: tensor.to(device) for name, tensor in collate([tokenised[row] for row in rows]).items()}
            results.update(zip(rows, function(unwrapped, batch, rows), strict=True))
    return _gather(results, accelerator)


def _batches_of_process(
    tokenised: Dataset, batch_size: int, accelerator: Accelerator | None
) -> LengthGroupedBatchSampler:
    """Return this process's share of length-grouped batches, as rows."""
    num_processes = accelerator.num_processes if accelerator else 1
    return LengthGroupedBatchSampler(
        tokenised["length"],
        # Every process takes part in every batch.
        -(-batch_size // num_processes) * num_processes,
        shuffle=False,
        num_processes=num_processes,
        process_index=accelerator.process_index if accelerator else 0,
    )


@contextmanager
def _inference_mode(model: nn.Module, seed: int) -> Iterator[Any]:
    unwrapped = extract_model_from_parallel(model)
    device = next(unwrapped.parameters()).device
    modes = [(module, module.training) for module in unwrapped.modules()]
    unwrapped.eval()
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(seed)
            yield unwrapped
    finally:
        for module, was_training in modes:
            module.training = was_training


def _gather(results: dict[int, Result], accelerator: Accelerator | None) -> list[Result]:
    """Collect the results of all processes by row; a row that two of them computed counts once."""
    pairs = list(results.items())
    if accelerator is not None and accelerator.num_processes > 1:
        pairs = accelerator.gather_for_metrics(pairs, use_gather_object=True)
    by_row = dict(pairs)
    return [by_row[row] for row in range(len(by_row))]
