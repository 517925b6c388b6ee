"""The report as a page to read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from .report import JOINT_SCORES, statistics_library
from .sheets import ERROR_TYPES, METRICS, SCORES

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


def describe_report(report: dict[str, Any]) -> str:
    """The report as Markdown."""
    lines = [
        "# Human evaluation",
        "",
        f"{report['num_endings']:,} endings of {report['num_stories']:,} stories, each scored by "
        f"{report['num_annotators']} annotator{'s' if report['num_annotators'] > 1 else ''} "
        f"with 0, 1 or 2 (`{report['sample']}`).",
        *_section("Scores", _scores(report), _SCORES_NOTE),
        *_section("Grammar and logicality together", _joint(report), _JOINT_NOTE),
        *_section("Agreement", _agreement(report), _AGREEMENT_NOTE),
        *_section("Sign tests", _sign_tests(report), _SIGN_NOTE),
        *_section("Kinds of error", _errors(report), _ERRORS_NOTE),
    ]
    return "\n".join(lines) + "\n"


_SCORES_NOTE = (
    "Means of the majority's scores, the median's where no score has a majority; "
    "in brackets the 95 % interval over stories (bootstrap)."
)
_JOINT_NOTE = "*a-b*: share of endings with *a* for grammar and *b* for logicality."
_AGREEMENT_NOTE = "*n/m*: share of endings to which *n* of *m* annotators gave the same score."
_SIGN_NOTE = (
    "Over stories, two-sided; ties don't count. *p (Holm)* is corrected for all pairs of systems in the same metric."
)
_ERRORS_NOTE = (
    "Bad endings: mean score of 1 or less in at least one metric. Of these, the kind of error that most annotators "
    "named; undecided where none was named or two were equally frequent."
)


def _section(title: str, table: list[str], note: str) -> list[str]:
    return ["", f"## {title}", "", *(table or ["There is only one system."]), "", note]


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(cells) + " |" for cells in lines]


def _cell(name: str) -> str:
    """A name that Markdown shows as it is."""
    return re.sub(r"([\\`*<|\[])", r"\\\1", name)


def _scores(report: dict[str, Any]) -> list[str]:
    def shown(score: dict[str, float]) -> str:
        return f"{score['mean']:.2f} ({score['low']:.2f} to {score['high']:.2f})"

    rows = [
        [_cell(name), *(shown(system[metric.name]) for metric in METRICS)]
        for name, system in report["systems"].items()
    ]
    return _table(["system", *(metric.name for metric in METRICS)], rows)


def _joint(report: dict[str, Any]) -> list[str]:
    rows = [
        [_cell(name), *(f"{system['joint'][pair]:.1%}" for pair in JOINT_SCORES)]
        for name, system in report["systems"].items()
    ]
    return _table(["system", *JOINT_SCORES], rows)


def _agreement(report: dict[str, Any]) -> list[str]:
    shares = list(report["agreement"][METRICS[0].name]["shares"])
    rows = [
        [name, *(f"{agreement['shares'][size]:.1%}" for size in shares), _number(agreement["fleiss_kappa"], 2)]
        for name, agreement in report["agreement"].items()
    ]
    return _table(["metric", *shares, "Fleiss' kappa"], rows)


def _sign_tests(report: dict[str, Any]) -> list[str]:
    rows = [
        [
            metric,
            f"{_cell(test['system'])} vs. {_cell(test['other'])}",
            *(str(test[count]) for count in ("wins", "losses", "ties")),
            _number(test["p_value"], 4),
            _number(test["holm"], 4),
        ]
        for metric, tests in report["sign_tests"].items()
        for test in tests
    ]
    header = ["metric", "systems", "wins", "losses", "ties", "p", "p (Holm)"]
    return _table(header, rows) if rows else []


def _errors(report: dict[str, Any]) -> list[str]:
    rows = []
    for name, system in report["systems"].items():
        errors = system["errors"]
        counts = [*errors["num_by_type"].values(), errors["num_undecided"]]
        rows.append([_cell(name), str(errors["num_bad"]), *(_share(count, errors["num_bad"]) for count in counts)])
    titles = [kind.title.lower() for kind in ERROR_TYPES]
    return _table(["system", "bad endings", *titles, "undecided"], rows)


def _share(count: int, total: int) -> str:
    return f"{count / total:.1%} ({count})" if total else "-"


def _number(value: float | None, digits: int) -> str:
    if value is None:
        return "not defined"
    smallest = 10**-digits
    return f"< {smallest}" if 0 < value < smallest else f"{value:.{digits}f}"
