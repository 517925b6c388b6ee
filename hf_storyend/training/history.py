"""The log of a run: a line of JSON an event, kept in step with checkpoints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..directories import replace_file

LOG = "train_log.jsonl"


class History:
    """
    Appends events to `train_log.jsonl`. An event is a dictionary with its `step`; training lines have `loss`,
    evaluations have `eval_...`.
    """

    def __init__(self, directory: Path, writes: bool):
        self.path = directory / LOG
        self.writes = writes
        self.events: list[dict[str, Any]] = []

    def go_back(self, step: int) -> None:
        """Forget what came after `step`: a run that resumes there will tell it again."""
        if self.path.is_file():
            self.events = [event for event in _read_events(self.path) if event["step"] <= step]
        if self.writes and self.path.is_file():
            replace_file(self.path, "".join(map(_line, self.events)))

    def add(self, event: dict[str, Any]) -> None:
        """Note an event; it is on the disk when this returns."""
        self.events.append(event)
        if self.writes:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(_line(event))


def _line(event: dict[str, Any]) -> str:
    return json.dumps(event, ensure_ascii=False) + "\n"


def _read_events(path: Path) -> list[dict[str, Any]]:
    """Events of a log; a line that a kill cut short is left out."""
    events = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict) and isinstance(event.get("step"), int):
            events.append(event)
    return events
