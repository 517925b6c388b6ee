"""Pictures of a comparison: the table as bars, and learning curves. They need matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .table import COLUMNS

_PANELS = ("sampled_perplexity", "bleu_1", "bleu_2")


def draw_chart(comparison: Mapping[str, Any], path: Path) -> bool:
    """Draw the table as a bar chart, with the paper's numbers; returns False if matplotlib is not installed."""
    figure = _new_figure(11, 1.6 + 0.42 * len(comparison["systems"]))
    if figure is None:
        return False
    rows = comparison["systems"].values()
    places = range(len(rows))
    for axes, metric in zip(figure.subplots(1, len(_PANELS), sharey=True), _PANELS, strict=True):
        ours = [row["metrics"].get(metric, 0.0) for row in rows]
        paper = [(row["paper"] or {}).get(metric, 0.0) for row in rows]
        axes.barh([place - 0.2 for place in places], ours, height=0.38, label="measured here")
        axes.barh([place + 0.2 for place in places], paper, height=0.38, label="paper", color="0.75")
        axes.set_title(COLUMNS[metric])
        axes.set_yticks(list(places), [row["title"] for row in rows])
        axes.grid(axis="x", alpha=0.3)
    axes.invert_yaxis()
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    figure.suptitle(f"Budget of each system: {comparison['budget']}")
    figure.savefig(path, dpi=120)
    return True


def draw_curves(comparison: Mapping[str, Any], path: Path) -> bool:
    """Draw validation perplexity and BLEU-2 of all rows over the epochs; returns False without matplotlib."""
    figure = _new_figure(11, 4)
    if figure is None:
        return False
    perplexity, bleu = figure.subplots(1, 2)
    for row in comparison["systems"].values():
        epochs = [point["epoch"] for point in row["curve"]]
        style = {"marker": "o", "markersize": 3, "label": row["title"]}
        perplexity.plot(epochs, [point["perplexity"] for point in row["curve"]], **style)
        bleu.plot(epochs, [point["bleu_2"] for point in row["curve"]], **style)
    for axes, title in ((perplexity, "perplexity, full softmax"), (bleu, COLUMNS["bleu_2"])):
        axes.set_title(f"{title}, validation stories")
        axes.set_xlabel("epochs")
        axes.grid(alpha=0.3)
    figure.legend(*bleu.get_legend_handles_labels(), loc="outside right center", fontsize=8)
    figure.savefig(path, dpi=120)
    return True


def _new_figure(width: float, height: float) -> Any:
    """Return a figure, None if matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return None
    return Figure(figsize=(width, height), layout="constrained")
