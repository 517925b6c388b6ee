"""The scores of all systems as one picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .libraries import statistics_library
from .rubric import METRICS, SCORES

_COLORS = {"grammar": "#8fb3d9", "logicality": "#f2b36b"}
_THICKNESS = 0.38


def draw_scores(report: dict[str, Any], path: Path) -> None:
    """Write a bar for every system and metric, with its 95 % interval; the format is that of the file's name."""
    # A figure of its own: pyplot would look for a screen.
    num_systems = len(report["systems"])
    figure = statistics_library("matplotlib.figure").Figure(
        figsize=(7, 1.4 + 0.62 * num_systems), layout="constrained"
    )
    axes = figure.subplots()
    for place, metric in enumerate(METRICS):
        _draw_metric(axes, report, metric.name, (place - (len(METRICS) - 1) / 2) * _THICKNESS)
    # Dollar signs would start a formula.
    axes.set_yticks(range(num_systems), [name.replace("$", r"\$") for name in report["systems"]])
    axes.invert_yaxis()
    axes.set_xlim(SCORES[0], SCORES[-1])
    axes.set_xlabel(f"mean score and its 95 % interval, {report['num_stories']:,} stories")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=len(METRICS), frameon=False)
    figure.savefig(path, dpi=150)


def _draw_metric(axes: Any, report: dict[str, Any], metric: str, shift: float) -> None:
    scores = [system[metric] for system in report["systems"].values()]
    means = [score["mean"] for score in scores]
    below = [score["mean"] - score["low"] for score in scores]
    above = [score["high"] - score["mean"] for score in scores]
    places = [place + shift for place in range(len(scores))]
    # Where all scores are 2 the bar touches the edge: its interval must not be cut there.
    style = {"capsize": 3, "ecolor": "#555555", "color": _COLORS[metric], "error_kw": {"clip_on": False}}
    axes.barh(places, means, _THICKNESS, xerr=[below, above], label=metric, **style)
    for place, mean in zip(places, means, strict=True):
        # At the foot of the bar, where no interval crosses it.
        axes.text(0.02, place, f"{mean:.2f}", va="center", fontsize=8)
