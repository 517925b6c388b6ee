"""Ctrl-C and SIGTERM as a wish to stop: what is being done is finished and saved first."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any


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
