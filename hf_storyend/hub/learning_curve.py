"""The learning curve of a run for its card: evaluations during training as a table, and the picture of the run."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
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
PUBLISHED_LOG = "train_log.jsonl.gz"
_MAX_ROWS = 15


def learning_curve(folder: Path) -> str | None:
    """Return the evaluations of a run as Markdown, None if there were none or nothing tells."""
    picture = [f"![Perplexity, BLEU and learning rate over the updates]({PICTURE})", ""]
    points = _evaluations(_log_history(folder / "trainer_state.json"))
    return _describe(points, picture if (folder / PICTURE).is_file() else ())


def published_learning_curve(folder: Path) -> str | None:
    """Return the same for a row that a comparison has published, from its log."""
    with gzip.open(folder / PUBLISHED_LOG, "rt", encoding="utf-8") as lines:
        return _describe(_evaluations([json.loads(line) for line in lines]))


def _describe(points: Sequence[Mapping[str, float]], picture: Sequence[str] = ()) -> str | None:
    if not points:
        return None
    # The last one stays.
    every = -(-len(points) // _MAX_ROWS)
    shown = points[::-1][::every][::-1]
    lines = [f"| {' | '.join(_COLUMNS.values())} |", f"|{' ---: |' * len(_COLUMNS)}"]
    lines += [f"| {' | '.join(f'{point[name]:.4g}' for name in _COLUMNS)} |" for point in shown]
    note = f"On {points[0]['eval_num_stories']:.0f} validation stories."
    return "\n".join([*picture, note, "", *lines])


def _log_history(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))["log_history"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return []


def _evaluations(events: Any) -> list[Mapping[str, float]]:
    """Return the evaluations on as many stories as the first had; the last one of a run may have more."""
    try:
        found = [event for event in events if all(map(_is_number, (event.get(name) for name in _needed())))]
    except (TypeError, AttributeError):
        return []
    return [event for event in found if event["eval_num_stories"] == found[0]["eval_num_stories"]]


def _needed() -> tuple[str, ...]:
    return (*_COLUMNS, "eval_num_stories")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
