"""The table of a comparison as Markdown: Table 1 of the paper as measured, learning, paired tests and ablations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from math import log
from typing import Any

from ..evaluation.ablation_results import AS_IT_IS
from ..modeling.decoding import describe_decoding

# Sampled perplexity, BLEU-1 and BLEU-2 (in percent) of Table 1 in the paper.
PAPER_TABLE: dict[str, tuple[float, float, float]] = {
    "seq2seq": (18.97, 18.64, 4.10),
    "hlstm": (17.26, 24.59, 7.71),
    "hlstm-copy": (19.93, 24.69, 7.83),
    "hlstm-msa-ga": (15.75, 25.88, 8.09),
    "hlstm-msa-ca": (12.53, 25.14, 8.25),
    "ie": (11.04, 25.14, 8.13),
    "ie-msa-ga": (9.72, 25.66, 8.54),
    "ie-msa-ca": (8.79, 26.82, 9.36),
}
COLUMNS = {
    "perplexity": "PPL true",
    "sampled_perplexity": "PPL sampled",
    "bleu_1": "BLEU-1",
    "bleu_2": "BLEU-2",
    "distinct_2": "distinct-2",
    "cloze_accuracy": "Story Cloze",
}
# Metrics of the paired tests.
PAIRED = ("perplexity", "bleu_1", "bleu_2")
_BASELINES = {"constant_ending": "one constant ending", "last_sentence": "copy of the last sentence"}
_NONE = "-"
# Difference of log perplexities: 2 %.
_CLOSE = 0.02


def markdown_table(comparison: Mapping[str, Any]) -> str:
    """Return all tables of a comparison; one without finished rows says so."""
    if not comparison["systems"]:
        return "\n".join(["No row is finished.", *_unfinished(comparison), ""])
    tables = (_main_table, _seeds_note, _learning_table, _paired_table, _ablation_table)
    blocks = ["\n".join(lines) for table in tables if (lines := list(table(comparison)))]
    return "\n\n".join([*blocks, *_unfinished(comparison)]) + "\n"


def _main_table(comparison: Mapping[str, Any]) -> Iterator[str]:
    rows = comparison["systems"]
    names = [name for name in COLUMNS if any(name in row["metrics"] for row in rows.values())]
    titles = [COLUMNS[name] for name in names]
    yield from _head("system", *titles, "weights", "stories/s", "hours", "paper: PPL sampled", "BLEU-1", "BLEU-2")
    for row in rows.values():
        rate = row["stories_per_second"]
        own = [f"{row['parameters']:,}", "not measured" if rate is None else f"{rate:.1f}", f"{row['hours']:.2f}"]
        paper = [_NONE] * 3 if row["paper"] is None else [f"{value:.2f}" for value in row["paper"].values()]
        cells = [_cell(row["metrics"], name, row.get("intervals")) for name in names]
        yield _row(row["title"], *cells, *own, *paper)
    first = next(iter(rows.values()))
    for name, title in _BASELINES.items():
        if name in first["trivial_baselines"]:
            baseline = first["trivial_baselines"][name]
            yield _row(title, *(_cell(baseline, metric) for metric in names), *[_NONE] * 6)
    yield ""
    yield _main_note(comparison, first)


def _main_note(comparison: Mapping[str, Any], first: Mapping[str, Any]) -> str:
    generation = first.get("generation") or {}
    parts = [
        f"{first['num_stories']:,} stories ({comparison['split']}); budget of each system: {comparison['budget']}",
        *([f"endings: {describe_decoding(generation)}"] if generation else []),
        "BLEU: sacrebleu, lower-cased, 13a",
        "the paper's perplexity is a sampled one",
        *(["in brackets: 95 % intervals by bootstrap over stories"] if first.get("intervals") else []),
        "hours are those of training, without evaluations",
        f"measured on {first['device']}",
    ]
    return f"{'; '.join(parts)}."


def _seeds_note(comparison: Mapping[str, Any]) -> Iterator[str]:
    """Yield which rows are so close that one seed does not tell them apart."""
    rows = comparison["systems"]
    kinds = {name: (row["system"], row["variant"]) for name, row in rows.items()}
    once = [name for name, kind in kinds.items() if list(kinds.values()).count(kind) == 1]
    pairs = [
        (one, other)
        for one, other in combinations(once, 2)
        if abs(log(rows[one]["metrics"]["perplexity"] / rows[other]["metrics"]["perplexity"])) < _CLOSE
    ]
    if pairs:
        named = "; ".join(f"{rows[one]['title']} and {rows[other]['title']}" for one, other in pairs)
        more = ",".join(dict.fromkeys(f"{name}.seed1" for pair in pairs for name in pair if ".seed" not in name))
        yield f"Within 2 % of each other in perplexity, with one seed each: {named}. More seeds: `{more}`."


def _learning_table(comparison: Mapping[str, Any]) -> Iterator[str]:
    """Yield validation perplexity by epoch."""
    curves = {
        row["title"]: {point["epoch"]: point for point in row["curve"]} for row in comparison["systems"].values()
    }
    epochs = sorted({epoch for curve in curves.values() for epoch in curve})
    if not epochs:
        return
    counts = sorted({point["num_stories"] for curve in curves.values() for point in curve.values()})
    stories = " or ".join(f"{count:,}" for count in counts)
    yield f"Perplexity (full softmax) of {stories} validation stories after each epoch:"
    yield ""
    yield from _head("system", *(f"{epoch:g}" for epoch in epochs), "last change")
    for title, curve in curves.items():
        values = [curve[epoch]["perplexity"] for epoch in sorted(curve)]
        change = f"{100 * (values[-1] / values[-2] - 1):+.1f} %" if len(values) > 1 else ""
        cells = [f"{curve[epoch]['perplexity']:.2f}" if epoch in curve else "" for epoch in epochs]
        yield _row(title, *cells, change)


def _paired_table(comparison: Mapping[str, Any]) -> Iterator[str]:
    """Yield the tests between neighbours; `comparison.json` has those of all pairs."""
    neighbours = [pair for pair in comparison.get("pairs", ()) if pair["are_neighbours"]]
    if not neighbours:
        return
    titles = {name: row["title"] for name, row in comparison["systems"].items()}
    yield "Each row against the one above it: difference, 95 % interval and p by paired bootstrap over stories:"
    yield ""
    yield from _head("system", "against", *(COLUMNS[metric] for metric in PAIRED))
    for pair in neighbours:
        cells = [describe_difference(pair[metric]) for metric in PAIRED]
        yield _row(titles[pair["second"]], titles[pair["first"]], *cells)


def describe_difference(difference: Mapping[str, float]) -> str:
    """Return a difference with its interval and p."""
    p_value = difference["p_value"]
    return (
        f"{difference['difference']:+.2f} [{difference['low']:+.2f}, {difference['high']:+.2f}], "
        f"p {'< 0.01' if p_value < 0.01 else f'{p_value:.2f}'}"
    )


def _ablation_table(comparison: Mapping[str, Any]) -> Iterator[str]:
    """Yield the change of the perplexity of all stories under each ablation."""
    changes = {
        row["title"]: {one["name"]: one["change"] for one in row["ablations"]["subsets"][0]["rows"]}
        for row in comparison["systems"].values()
        if row.get("ablations")
    }
    names = list(dict.fromkeys(name for row in changes.values() for name in row if name != AS_IT_IS))
    if not names:
        return
    yield f"Change of the perplexity of {comparison['split']} stories under each ablation:"
    yield ""
    yield from _head("system", *names)
    for title, row in changes.items():
        # Adding zero turns -0.0 into 0.0.
        yield _row(title, *(f"{round(row[name], 1) + 0.0:+.1f} %" if name in row else "" for name in names))


def _unfinished(comparison: Mapping[str, Any]) -> list[str]:
    rows = [f"{name} ({100 * done:.0f} % trained)" for name, done in comparison.get("unfinished", {}).items()]
    return [f"Not finished: {', '.join(rows)}."] if rows else []


def _cell(metrics: Mapping[str, float], name: str, intervals: Mapping[str, Any] | None = None) -> str:
    if name not in metrics:
        return _NONE
    text = f"{metrics[name]:.2f}"
    if not intervals or name not in intervals:
        return text
    low, high = intervals[name]
    return f"{text} [{low:.2f}, {high:.2f}]"


def _head(*titles: str) -> list[str]:
    return [_row(*titles), _row("---", *["---:"] * (len(titles) - 1))]


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
