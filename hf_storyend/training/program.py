"""Ending a program as its users expect: a line for what they can mend, and how to go on after a stop."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from torch import distributed

from .interruption import TrainingInterrupted
from .non_finite import NonFiniteLoss

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
