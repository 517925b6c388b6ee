"""The Accelerator of a run, and saying things once."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list

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
