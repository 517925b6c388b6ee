"""A comparison as a table to read and as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..systems import find_system
from .paper_table import PAPER_TABLE

_COLUMNS = {
    "perplexity": "PPL true",
    "sampled_perplexity": "PPL sampled",
    "bleu_1": "BLEU-1",
    "bleu_2": "BLEU-2",
    "distinct_2": "distinct-2",
}
_FLOORS = {"constant_ending": "one constant ending", "last_sentence": "copy of the last sentence"}


def markdown_table(comparison: dict[str, Any]) -> str:
    """The paper's Table 1 as measured, with the paper's own numbers at the right and trivial systems below."""
    systems = comparison["systems"]
    head = ["system", *_COLUMNS.values(), "parameters", "stories/s", "paper: PPL sampled", "BLEU-1", "BLEU-2"]
    lines = [_row(head), _row(["---", *["---:"] * (len(head) - 1)])]
    for name, result in systems.items():
        paper = [f"{value:.2f}" for value in PAPER_TABLE.get(name, ())] or ["-"] * 3
        rate = result["stories_per_second"]
        own = [f"{result['parameters']:,}", "not measured" if rate is None else f"{rate:.1f}"]
        lines.append(_row([find_system(name).paper_name or name, *_cells(result["metrics"]), *own, *paper]))
    first = next(iter(systems.values()))
    for name, title in _FLOORS.items():
        if name in first["floors"]:
            lines.append(_row([title, *_cells(first["floors"][name]), *["-"] * 5]))
    note = (
        f"{first['num_stories']:,} stories ({comparison['split']}); each system was given {comparison['budget']}. "
        "BLEU: sacrebleu, lower-cased, 13a. The paper's perplexity is a sampled one. "
        f"Measured on {first['device']}."
    )
    return "\n".join([*lines, "", note, ""])


def draw_table(comparison: dict[str, Any], path: Path) -> bool:
    """The same as bars, the paper's numbers beside ours; False if matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return False
    systems = comparison["systems"]
    names = [find_system(name).paper_name or name for name in systems]
    figure = Figure(figsize=(11, 1.6 + 0.42 * len(names)), layout="constrained")
    panels = ("sampled_perplexity", "bleu_1", "bleu_2")
    places = range(len(names))
    for column, (axes, metric) in enumerate(zip(figure.subplots(1, 3, sharey=True), panels, strict=True)):
        ours = [result["metrics"].get(metric, 0.0) for result in systems.values()]
        paper = [PAPER_TABLE[name][column] if name in PAPER_TABLE else 0.0 for name in systems]
        axes.barh([place - 0.2 for place in places], ours, height=0.38, label="measured here")
        axes.barh([place + 0.2 for place in places], paper, height=0.38, label="paper", color="0.75")
        axes.set_title(_COLUMNS[metric])
        axes.set_yticks(list(places), names)
        axes.grid(axis="x", alpha=0.3)
    axes.invert_yaxis()
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    figure.suptitle(f"Each system: {comparison['budget']}")
    figure.savefig(path, dpi=120)
    return True


def _cells(metrics: dict[str, float]) -> list[str]:
    return [f"{metrics[name]:.2f}" if name in metrics else "-" for name in _COLUMNS]


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
