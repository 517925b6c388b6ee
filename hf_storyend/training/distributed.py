"""Accelerate: setting up processes and trackers, and unsharded weights and optimizer states."""

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

from ..processes import start_accelerator
from .options import TrainingOptions

# Gathered in full, on the CPU: the model is small.
_FULL = StateDictOptions(full_state_dict=True, cpu_offload=True)
# Process groups of runs that have ended: see `end_training`.
_ENDED_GROUPS: list[Any] = []


def build_accelerator(options: TrainingOptions) -> Accelerator:
    """Return an Accelerator with the precision and trackers of the options, and otherwise as it was launched."""
    if options.full_determinism:
        # Read by CUDA's libraries when they start.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
    accelerator = start_accelerator(
        mixed_precision=options.mixed_precision,
        log_with=options.trackers or None,
        project_dir=str(Path(options.output_dir) / "logs") if options.trackers else None,
    )
    if accelerator.gradient_accumulation_steps != 1:
        raise ValueError(
            "The Accelerate configuration sets gradient accumulation; use `--gradient_accumulation_steps` instead, "
            "so that losses are divided by the tokens of the whole update."
        )
    _check_trackers(options, accelerator)
    return accelerator


def start_trackers(options: TrainingOptions, accelerator: Accelerator) -> None:
    """Start a run in every tracker."""
    if not options.trackers:
        return
    name = options.run_name or Path(options.output_dir).resolve().name
    config = {key: value for key, value in options.to_dict().items() if value is not None}
    named = {tracker: {"name": name} for tracker in options.trackers if tracker in ("wandb", "trackio")}
    accelerator.init_trackers("hf_storyend", config=config, init_kwargs=named)


def end_training(accelerator: Accelerator) -> None:
    """
    Close the trackers and the process group.

    The group is referenced until Python exits. If a model's wrapper held the last reference, the group's destructor
    would wait, holding the GIL, for a thread that may itself wait for the GIL: a deadlock on busy machines.
    """
    if torch.distributed.is_initialized():
        _ENDED_GROUPS.append(torch.distributed.group.WORLD)
    accelerator.end_training()


def broadcast_from_main(accelerator: Accelerator, value: Any) -> Any:
    """Return the main process's value in every process."""
    return broadcast_object_list([value])[0] if accelerator.num_processes > 1 else value


def write_on_main_process(accelerator: Accelerator, write: Callable[[], Any], what: str) -> None:
    """Write in the main process; if that fails, raise in every process instead of leaving the others waiting."""
    problem = None
    if accelerator.is_main_process:
        try:
            write()
        except OSError as error:
            problem = f"{what} could not be written: {error}. Earlier files are intact."
    if problem := broadcast_from_main(accelerator, problem):
        raise OSError(problem)


def full_weights(model: nn.Module) -> dict[str, torch.Tensor]:
    """Gather unsharded weights on the CPU. A collective call; of a sharded model, only the main process gets them."""
    return get_model_state_dict(model, options=_FULL)


def load_full_weights(model: nn.Module, weights: dict[str, torch.Tensor]) -> None:
    """Load unsharded weights into a model, sharded or not."""
    set_model_state_dict(model, weights, options=StateDictOptions(full_state_dict=True))


def full_optimizer_state(model: nn.Module, optimizer: AcceleratedOptimizer) -> dict[str, torch.Tensor]:
    """Gather the optimizer's unsharded tensors as `parameter/name`. A collective call."""
    state = get_optimizer_state_dict(model, optimizer.optimizer, options=_FULL).get("state", {})
    return {
        f"{parameter}/{name}": torch.as_tensor(value)
        for parameter, values in state.items()
        for name, value in values.items()
        if value is not None
    }


def load_full_optimizer_state(
    model: nn.Module, optimizer: AcceleratedOptimizer, tensors: dict[str, torch.Tensor]
) -> None:
    """Load an optimizer's unsharded tensors; its hyperparameters stay those of the options."""
    current = get_optimizer_state_dict(model, optimizer.optimizer, options=_FULL)
    state: dict[str, dict[str, torch.Tensor]] = {}
    for key, tensor in tensors.items():
        parameter, name = key.rsplit("/", 1)
        state.setdefault(parameter, {})[name] = tensor
    set_optimizer_state_dict(
        model,
        optimizer.optimizer,
        # With shards, only the main process has the groups.
        {"state": state, "param_groups": current.get("param_groups", [])},
        options=StateDictOptions(full_state_dict=True, broadcast_from_rank0=_is_sharded(model)),
    )


@contextmanager
def unsharded(model: nn.Module, accelerator: Accelerator) -> Iterator[nn.Module]:
    """Yield the unwrapped model with its full weights: `generate()` bypasses the wrapper's forward."""
    unwrapped = accelerator.unwrap_model(model)
    if not _is_sharded(unwrapped):
        yield unwrapped
        return
    unwrapped.unshard()
    try:
        yield unwrapped
    finally:
        unwrapped.reshard()


def _is_sharded(model: nn.Module) -> bool:
    return isinstance(model, FSDPModule)


def _check_trackers(options: TrainingOptions, accelerator: Accelerator) -> None:
    """Refuse trackers that are not installed: Accelerate leaves them out silently."""
    available = {str(tracker) for tracker in accelerator.log_with}
    for name in options.trackers:
        if name not in available:
            raise ValueError(
                f"`report_to` names the tracker `{name}`, which is not installed or not known: `pip install {name}`, "
                "or leave it out."
            )
