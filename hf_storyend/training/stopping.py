"""How a run stops early: signals, non-finite losses and lost processes, and what a program says about them."""

from __future__ import annotations

import json
import logging
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

from ..processes import leave_without_destructors
from ..terminal import printable, printable_logs
from .batching import Update

# More skipped updates in a row mean that the weights themselves are broken.
MAX_SKIPPED_IN_A_ROW = 20
# What gloo and NCCL report when another process has died.
_LOST_CONNECTION = ("closed by peer", "reset by peer", "broken pipe", "timed out", "connection refused")


class TrainingInterrupted(Exception):
    """The run received a signal, finished its update and saved a checkpoint."""

    def __init__(self, signal_number: int, step: int, directory: str):
        super().__init__(f"Stopped by {signal.Signals(signal_number).name} after {step} updates.")
        self.signal_number = signal_number
        self.directory = directory


class NonFiniteLoss(ArithmeticError):
    """The loss or the gradient norm is NaN or infinite."""


class StopSignals:
    """Records the first SIGINT or SIGTERM in a `with` block; a second one has its usual effect."""

    def __init__(self) -> None:
        self.received = 0
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> StopSignals:
        # Python allows handlers in the main thread only.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._record)
        return self

    def __exit__(self, *error: Any) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _record(self, number: int, frame: FrameType | None) -> None:
        self.received = number
        signal.signal(number, self._previous[number])


def dump_non_finite_batch(directory: Path, step: int, process_index: int, update: Update) -> Path:
    """Save the batches of an update for inspection: their tensors, and the dataset rows they hold."""
    folder = directory / "non_finite"
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


def run_as_program(main: Callable[[], Any]) -> None:
    """
    Run `main` as a command-line program: log to the terminal, and end with a message instead of a traceback.

    Exit codes: 2 for what the user can fix, 1 if another process of the run is lost, 128 + n after signal n.
    """
    log_to_terminal()
    try:
        with printable_logs():
            main()
        _exit(0)
    except TrainingInterrupted as stop:
        _say(
            f"{stop} The checkpoint is in {stop.directory}: the same command resumes from it "
            "(with `--resume_from_checkpoint auto`, which is the default)."
        )
        _exit(128 + stop.signal_number)
    except (ValueError, OSError, ImportError, NonFiniteLoss) as error:
        _say(f"Error: {error}")
        sys.exit(2)
    except RuntimeError as error:
        if not _is_lost_process(error):
            raise
        _say(
            "Error: another process of this run has died or can't be reached. "
            f"The same command resumes from the last checkpoint. ({error})"
        )
        sys.exit(1)


def _exit(code: int) -> None:
    leave_without_destructors(code)
    if code:
        sys.exit(code)


def _say(message: str) -> None:
    sys.stderr.write(f"\n{printable(message)}\n")


def log_to_terminal() -> None:
    """Show the package's log messages on stderr, unless logging is configured already."""
    logger = logging.getLogger("hf_storyend")
    if logger.hasHandlers():
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)


def _is_lost_process(error: RuntimeError) -> bool:
    """Whether an error comes from communication with the other processes of the run."""
    if not (distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1):
        return False
    message = str(error).lower()
    return isinstance(error, distributed.DistError) or any(words in message for words in _LOST_CONNECTION)
