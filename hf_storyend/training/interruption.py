"""Ending a program as its users expect: a line for what they can mend, and how to go on after a stop."""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from safetensors.torch import save_file
from torch import distributed

from .optimization import Update


class TrainingInterrupted(Exception):
    """A run that was asked to stop, did so after `step` updates and saved itself."""

    def __init__(self, signal_number: int, step: int, checkpoint: str):
        super().__init__(f"Stopped by {signal.Signals(signal_number).name} after {step} updates.")
        self.signal_number = signal_number
        self.checkpoint = checkpoint


class StopSignals:
    """
    Remembers the first SIGINT or SIGTERM. A second one ends the program at once, as if nobody had listened.
    """

    def __init__(self) -> None:
        self.received = 0
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> StopSignals:
        # Python lets only the main thread set handlers; in another one the program's own ones stay.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._remember)
        return self

    def __exit__(self, *error: Any) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _remember(self, number: int, frame: FrameType | None) -> None:
        self.received = number
        signal.signal(number, self._previous[number])


FOLDER = "non_finite"
# Skipping on and on would only hide that the weights themselves are broken.
MAX_SKIPPED_IN_A_ROW = 20


class NonFiniteLoss(ArithmeticError):
    """The loss or the gradients were not finite, and the run was told to stop."""


def save_offenders(directory: Path, step: int, process_index: int, update: Update) -> Path:
    """Write the batches of an update for inspection: their tensors, and which stories they hold."""
    folder = directory / FOLDER
    folder.mkdir(exist_ok=True)
    path = folder / f"step-{step}-process-{process_index}.safetensors"
    tensors = {
        f"{number}/{name}": value.detach().cpu().contiguous()
        for number, batch in enumerate(update.tensors)
        for name, value in batch.items()
        if isinstance(value, torch.Tensor)
    }
    save_file(tensors, path)
    stories = {"step": step, "process": process_index, "rows": update.rows}
    path.with_suffix(".json").write_text(json.dumps(stories) + "\n", encoding="utf-8")
    return path


# What gloo and NCCL say when a process that they talk to is no more.
_LOST_CONNECTION = ("closed by peer", "reset by peer", "broken pipe", "timed out", "connection refused")


def run_as_program(main: Callable[[], Any]) -> None:
    """Run `main`; mistakes and interruptions end in a message and an exit code, not in a traceback."""
    try:
        main()
    except TrainingInterrupted as stop:
        sys.stderr.write(
            f"\n{stop} All of it is saved in {stop.checkpoint}: the same command goes on from there "
            "(with `--resume auto`, which is the default).\n"
        )
        sys.exit(128 + stop.signal_number)
    except (ValueError, OSError, ImportError, NonFiniteLoss) as error:
        sys.stderr.write(f"\nError: {error}\n")
        sys.exit(2)
    except RuntimeError as error:
        if not _is_loss_of_a_process(error):
            raise
        sys.stderr.write(
            "\nError: another process of this run is gone, or can't be reached. "
            f"The same command goes on from the last checkpoint. ({error})\n"
        )
        sys.exit(1)


def _is_loss_of_a_process(error: RuntimeError) -> bool:
    """Whether it comes from talking to the processes that train together."""
    if not (distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1):
        return False
    said = str(error).lower()
    return isinstance(error, distributed.DistError) or any(word in said for word in _LOST_CONNECTION)
