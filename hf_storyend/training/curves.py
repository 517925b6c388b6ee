"""The curves of a run as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any


def draw_curves(events: Sequence[dict[str, Any]], path: Path, title: str) -> bool:
    """
    Perplexity of training and validation, BLEU and learning rate over the updates, as PNG. False, and no picture, if
    matplotlib is not installed (`pip install "hf_storyend[plots]"`) or there is nothing to draw yet.
    """
    if not events:
        return False
    events = _comparable(events)
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return False
    figure = Figure(figsize=(10, 3.4), layout="constrained")
    perplexity, bleu, rate = figure.subplots(1, 3)
    _draw(perplexity, events, {"perplexity": "training", "eval_perplexity": "validation"})
    perplexity.set_yscale("log")
    perplexity.set_title("perplexity of endings")
    _draw(bleu, events, {"eval_bleu_1": "BLEU-1", "eval_bleu_2": "BLEU-2"})
    bleu.set_title("BLEU on validation")
    _draw(rate, events, {"learning_rate": "learning rate"})
    rate.set_title("learning rate")
    figure.suptitle(title)
    figure.savefig(path, dpi=120)
    return True


def _comparable(events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without evaluations on more stories than the first one had, such as the last: they would make a step."""
    counts = [event["eval_num_stories"] for event in events if "eval_num_stories" in event]
    return [event for event in events if "eval_num_stories" not in event or event["eval_num_stories"] == counts[0]]


def _draw(axes: Any, events: Sequence[dict[str, Any]], lines: dict[str, str]) -> None:
    for name, label in lines.items():
        points = [(event["step"], event[name]) for event in events if name in event]
        if points:
            axes.plot(*zip(*points, strict=True), marker="o" if len(points) < 40 else "", markersize=3, label=label)
    axes.set_xlabel("updates")
    axes.grid(alpha=0.3)
    if axes.lines and len(lines) > 1:
        axes.legend()
