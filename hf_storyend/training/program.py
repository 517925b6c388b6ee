"""Ending a program as its users expect: a line for what they can mend, and how to go on after a stop."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from .interruption import TrainingInterrupted
from .non_finite import NonFiniteLoss


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
