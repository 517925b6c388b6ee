"""The learning curve of a run for its card: evaluations during training as a table, and the picture of the run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_COLUMNS = {
    "epoch": "epoch",
    "step": "updates",
    "eval_perplexity": "validation perplexity",
    "eval_bleu_1": "BLEU-1",
    "eval_bleu_2": "BLEU-2",
}
PICTURE = "curves.png"
_MAX_ROWS = 15


def learning_curve(folder: Path) -> str | None:
    """Return the evaluations of a run as Markdown, None if there were none or nothing tells."""
    points = _evaluations(folder / "trainer_state.json")
    if not points:
        return None
    # The last one stays.
    every = -(-len(points) // _MAX_ROWS)
    shown = points[::-1][::every][::-1]
    lines = [f"| {' | '.join(_COLUMNS.values())} |", f"|{' ---: |' * len(_COLUMNS)}"]
    lines += [f"| {' | '.join(f'{point[name]:.4g}' for name in _COLUMNS)} |" for point in shown]
    note = f"On {points[0]['eval_num_stories']:.0f} validation stories."
    picture = [f"![Perplexity, BLEU and learning rate over the updates]({PICTURE})", ""]
    return "\n".join([*(picture if (folder / PICTURE).is_file() else []), note, "", *lines])


def _evaluations(path: Path) -> list[Mapping[str, float]]:
    """Return the evaluations on as many stories as the first had; the last one of a run may have more."""
    try:
        events = json.loads(path.read_text(encoding="utf-8"))["log_history"]
        found = [event for event in events if all(map(_is_number, (event.get(name) for name in _needed())))]
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return []
    return [event for event in found if event["eval_num_stories"] == found[0]["eval_num_stories"]]


def _needed() -> tuple[str, ...]:
    return (*_COLUMNS, "eval_num_stories")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
