"""Weights and optimiser state as whole tensors, however they are spread over processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.optimizer import AcceleratedOptimizer
from accelerate.utils import broadcast_object_list
from torch import nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)
from torch.distributed.fsdp import FSDPModule

from .options import TrainingOptions

# Process groups of runs that are over: see `end_training`.
_ENDED: list[Any] = []


def build_accelerator(options: TrainingOptions) -> Accelerator:
    """An Accelerator with the precision and trackers of the options; everything else is what it was launched with."""
    if options.full_determinism:
        # Read by CUDA's libraries when they start.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
    accelerator = Accelerator(
        # Without a GPU, Accelerate sees processes that train together only if it is told that there is none.
        cpu=not torch.accelerator.is_available(),
        mixed_precision=options.mixed_precision,
        log_with=options.trackers or None,  # type: ignore[arg-type]
        project_dir=str(Path(options.output_dir) / "logs") if options.trackers else None,
    )
    if accelerator.gradient_accumulation_steps != 1:
        raise ValueError(
            "The Accelerate configuration sets gradient accumulation; "
            "use `--gradient_accumulation_steps` instead, so that losses are divided by the words of an update."
        )
    expected = int(os.environ.get("WORLD_SIZE", 1))
    if accelerator.num_processes != expected:
        raise ValueError(f"{expected} processes were launched, but Accelerate sees {accelerator.num_processes}.")
    _check_trackers(options, accelerator)
    return accelerator


def start_trackers(options: TrainingOptions, accelerator: Accelerator) -> None:
    """Begin a run in every tracker."""
    if not options.trackers:
        return
    name = options.run_name or Path(options.output_dir).resolve().name
    config = {key: value for key, value in options.to_dict().items() if value is not None}
    named = {tracker: {"name": name} for tracker in options.trackers if tracker in ("wandb", "trackio")}
    accelerator.init_trackers("hf_storyend", config=config, init_kwargs=named)


def end_training(accelerator: Accelerator) -> None:
    """
    Close trackers and leave the other processes. The group is held until Python ends: if a model's wrapper were the
    last to hold it, its end would wait, with Python's lock in hand, for a thread of the group that may just be waiting
    for that lock. On busy machines a stopped run then never ended.
    """
    if torch.distributed.is_initialized():
        _ENDED.append(torch.distributed.group.WORLD)
    accelerator.end_training()


def from_main_process(accelerator: Accelerator, value: Any) -> Any:
    """What the main process has, in every process."""
    return broadcast_object_list([value])[0] if accelerator.num_processes > 1 else value


def main_process_writes(accelerator: Accelerator, write: Callable[[], Any], what: str) -> None:
    """Let the main process write something. If it can't, every process says so, instead of waiting for it."""
    problem = None
    if accelerator.is_main_process:
        try:
            write()
        except OSError as error:
            problem = f"{what} could not be written: {error}. What was written before is intact."
    if problem := from_main_process(accelerator, problem):
        raise OSError(problem)


def _check_trackers(options: TrainingOptions, accelerator: Accelerator) -> None:
    """Accelerate leaves out a tracker that is not installed without a word."""
    usable = {str(tracker) for tracker in accelerator.log_with}
    for name in options.trackers:
        if name not in usable:
            raise ValueError(
                f"`report_to` names the tracker `{name}`, which is not installed or not known: `pip install {name}`, "
                "or leave it out."
            )


# Every process gets the whole: the model is small beside what it is trained with.
_WHOLE = StateDictOptions(full_state_dict=True, cpu_offload=True)


def whole_weights(model: nn.Module) -> dict[str, torch.Tensor]:
    """All weights by name, on the CPU. Every process must call it; with shards, only the first gets the tensors."""
    return get_model_state_dict(model, options=_WHOLE)


def load_weights(model: nn.Module, weights: dict[str, torch.Tensor]) -> None:
    """Put whole weights into a model, in shards if it has any."""
    set_model_state_dict(model, weights, options=StateDictOptions(full_state_dict=True))


def whole_optimizer_state(model: nn.Module, optimizer: AcceleratedOptimizer) -> dict[str, torch.Tensor]:
    """The optimiser's tensors, by `parameter/name`."""
    state = get_optimizer_state_dict(model, optimizer.optimizer, options=_WHOLE).get("state", {})
    return {
        f"{parameter}/{name}": torch.as_tensor(value)
        for parameter, values in state.items()
        for name, value in values.items()
        if value is not None
    }


def load_optimizer_state(model: nn.Module, optimizer: AcceleratedOptimizer, tensors: dict[str, torch.Tensor]) -> None:
    """Put an optimiser's tensors back; rates and the like come from the options."""
    whole = get_optimizer_state_dict(model, optimizer.optimizer, options=_WHOLE)
    # Where shards are gathered only the first process has the groups; names are the same everywhere.
    state: dict[str, dict[str, torch.Tensor]] = {}
    for key, tensor in tensors.items():
        parameter, name = key.rsplit("/", 1)
        state.setdefault(parameter, {})[name] = tensor
    set_optimizer_state_dict(
        model,
        optimizer.optimizer,
        {"state": state, "param_groups": whole.get("param_groups", [])},
        options=StateDictOptions(full_state_dict=True, broadcast_from_rank0=_is_sharded(model)),
    )


@contextmanager
def usable_weights(model: nn.Module, accelerator: Accelerator) -> Iterator[nn.Module]:
    """The bare model with all of its weights at hand: `generate()` calls parts of it past the wrapper."""
    bare = accelerator.unwrap_model(model)
    if not _is_sharded(bare):
        yield bare
        return
    bare.unshard()
    try:
        yield bare
    finally:
        bare.reshard()


def _is_sharded(model: nn.Module) -> bool:
    return isinstance(model, FSDPModule)
