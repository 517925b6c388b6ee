"""The report of an annotation: scores, agreement and tests as numbers, as a Markdown page and as a figure."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..files import atomic_write
from .judgements import Judgements
from .rubric import ERROR_TYPES, METRICS, SCORES
from .sampling import Sample
from .statistics import (
    Votes,
    agreement_shares,
    error_table,
    fleiss_kappa,
    import_extra,
    majority_vote,
    mean_and_interval,
    sign_tests,
)

# Grammar first, from good to bad.
JOINT_SCORES = [f"{grammar}-{logicality}" for grammar in reversed(SCORES) for logicality in reversed(SCORES)]

_SCORES_NOTE = (
    "Means of majority votes, or of medians where there is no majority; "
    "in brackets the 95 % bootstrap interval over stories."
)
_JOINT_NOTE = "*a-b*: share of endings with *a* for grammar and *b* for logicality."
_AGREEMENT_NOTE = "*n/m*: share of endings to which *n* of *m* annotators gave the same score."
_SIGN_NOTE = (
    "Over stories, two-sided, without ties. *p (Holm)* is corrected for all pairs of systems in the same metric."
)
_ERRORS_NOTE = (
    "Bad endings: mean score of 1 or less in at least one metric. Of these, the type of error that most annotators "
    "named; undecided if none was named or two were equally frequent."
)

_COLORS = {"grammar": "#8fb3d9", "logicality": "#f2b36b"}
_BAR_HEIGHT = 0.38


def build_report(sample: Sample, judgements: Judgements) -> dict[str, Any]:
    """Return mean and joint scores, agreement, sign tests and types of error, ready for JSON."""
    votes = {metric.name: _votes(sample, judgements, metric.name) for metric in METRICS}
    return {
        "sample": sample.id,
        "num_stories": len(sample.stories),
        "num_endings": len(sample.items),
        "num_annotators": sample.num_annotators,
        "systems": {system: _system_report(sample, judgements, votes, system) for system in sample.systems},
        "agreement": {metric.name: _agreement_report(judgements, metric.name) for metric in METRICS},
        "sign_tests": {name: [asdict(test) for test in sign_tests(by_system)] for name, by_system in votes.items()},
    }


def _votes(sample: Sample, judgements: Judgements, metric: str) -> Votes:
    """Return the majority votes by system, in the order of the stories, which pairs them for sign tests."""
    by_system: Votes = {system: [] for system in sample.systems}
    for item in sorted(sample.items, key=lambda item: item.story):
        scores = [judgement.scores[metric] for judgement in judgements[item.id]]
        by_system[item.system].append(majority_vote(scores))
    return by_system


def _system_report(sample: Sample, judgements: Judgements, votes: dict[str, Votes], system: str) -> dict[str, Any]:
    report: dict[str, Any] = {}
    for name, by_system in votes.items():
        mean, low, high = mean_and_interval(by_system[system])
        report[name] = {"mean": mean, "low": low, "high": high}
    grammar, logicality = votes["grammar"][system], votes["logicality"][system]
    pairs = Counter(f"{first}-{second}" for first, second in zip(grammar, logicality, strict=True))
    report["joint"] = {pair: pairs[pair] / len(sample.stories) for pair in JOINT_SCORES}
    endings = [judgements[item.id] for item in sample.items if item.system == system]
    report["errors"] = asdict(error_table(endings))
    return report


def _agreement_report(judgements: Judgements, metric: str) -> dict[str, Any]:
    rows = [[judgement.scores[metric] for judgement in each] for each in judgements.values()]
    num_annotators = len(rows[0])
    shares = {f"{size}/{num_annotators}": share for size, share in agreement_shares(rows).items()}
    return {"shares": shares, "fleiss_kappa": fleiss_kappa(rows)}


def write_report(report: dict[str, Any], output_dir: Path) -> None:
    """Write `report.json`, `report.md` and the figure `scores.png`."""
    output_dir.mkdir(parents=True, exist_ok=True)
    atomic_write(output_dir / "report.json", report_json(report) + "\n")
    atomic_write(output_dir / "report.md", describe_report(report))
    draw_scores(report, output_dir / "scores.png")


def report_json(report: dict[str, Any]) -> str:
    """Return the report as JSON."""
    return json.dumps(report, indent=1, ensure_ascii=False)


def describe_report(report: dict[str, Any]) -> str:
    """Return the report as a Markdown page."""
    lines = [
        "# Human evaluation",
        "",
        f"{report['num_endings']:,} endings of {report['num_stories']:,} stories, each scored by "
        f"{report['num_annotators']} annotator{'s' if report['num_annotators'] > 1 else ''} "
        f"with 0, 1 or 2 (`{report['sample']}`).",
        *_section("Scores", _scores_table(report), _SCORES_NOTE),
        *_section("Grammar and logicality together", _joint_table(report), _JOINT_NOTE),
        *_section("Agreement", _agreement_table(report), _AGREEMENT_NOTE),
        *_section("Sign tests", _sign_tests_table(report), _SIGN_NOTE),
        *_section("Types of error", _errors_table(report), _ERRORS_NOTE),
    ]
    return "\n".join(lines) + "\n"


def _section(title: str, table: list[str], note: str) -> list[str]:
    return ["", f"## {title}", "", *(table or ["There is only one system."]), "", note]


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(cells) + " |" for cells in lines]


def _escape(name: str) -> str:
    """Escape a name for Markdown."""
    return re.sub(r"([\\`*<|\[])", r"\\\1", name)


def _scores_table(report: dict[str, Any]) -> list[str]:
    def cell(score: dict[str, float]) -> str:
        return f"{score['mean']:.2f} ({score['low']:.2f} to {score['high']:.2f})"

    rows = [
        [_escape(name), *(cell(system[metric.name]) for metric in METRICS)]
        for name, system in report["systems"].items()
    ]
    return _table(["system", *(metric.name for metric in METRICS)], rows)


def _joint_table(report: dict[str, Any]) -> list[str]:
    rows = [
        [_escape(name), *(f"{system['joint'][pair]:.1%}" for pair in JOINT_SCORES)]
        for name, system in report["systems"].items()
    ]
    return _table(["system", *JOINT_SCORES], rows)


def _agreement_table(report: dict[str, Any]) -> list[str]:
    shares = list(report["agreement"][METRICS[0].name]["shares"])
    rows = [
        [name, *(f"{agreement['shares'][size]:.1%}" for size in shares), _number(agreement["fleiss_kappa"], 2)]
        for name, agreement in report["agreement"].items()
    ]
    return _table(["metric", *shares, "Fleiss' kappa"], rows)


def _sign_tests_table(report: dict[str, Any]) -> list[str]:
    rows = [
        [
            metric,
            f"{_escape(test['system'])} vs. {_escape(test['other'])}",
            *(str(test[count]) for count in ("wins", "losses", "ties")),
            _number(test["p_value"], 4),
            _number(test["holm"], 4),
        ]
        for metric, tests in report["sign_tests"].items()
        for test in tests
    ]
    header = ["metric", "systems", "wins", "losses", "ties", "p", "p (Holm)"]
    return _table(header, rows) if rows else []


def _errors_table(report: dict[str, Any]) -> list[str]:
    rows = []
    for name, system in report["systems"].items():
        errors = system["errors"]
        counts = [*errors["num_by_type"].values(), errors["num_undecided"]]
        rows.append([_escape(name), str(errors["num_bad"]), *(_share(count, errors["num_bad"]) for count in counts)])
    titles = [kind.title.lower() for kind in ERROR_TYPES]
    return _table(["system", "bad endings", *titles, "undecided"], rows)


def _share(count: int, total: int) -> str:
    return f"{count / total:.1%} ({count})" if total else "-"


def _number(value: float | None, digits: int) -> str:
    if value is None:
        return "not defined"
    smallest = 10**-digits
    return f"< {smallest}" if 0 < value < smallest else f"{value:.{digits}f}"


def draw_scores(report: dict[str, Any], path: Path) -> None:
    """Draw the mean scores as bars with 95 % intervals, in the format of the file's suffix."""
    # Without pyplot, which looks for a display.
    num_systems = len(report["systems"])
    figure = import_extra("matplotlib.figure").Figure(figsize=(7, 1.4 + 0.62 * num_systems), layout="constrained")
    axes = figure.subplots()
    for index, metric in enumerate(METRICS):
        _draw_metric(axes, report, metric.name, (index - (len(METRICS) - 1) / 2) * _BAR_HEIGHT)
    # Matplotlib reads dollar signs as mathematics.
    axes.set_yticks(range(num_systems), [name.replace("$", r"\$") for name in report["systems"]])
    axes.invert_yaxis()
    axes.set_xlim(SCORES[0], SCORES[-1])
    axes.set_xlabel(f"mean score and its 95 % interval, {report['num_stories']:,} stories")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=len(METRICS), frameon=False)
    figure.savefig(path, dpi=150)


def _draw_metric(axes: Any, report: dict[str, Any], metric: str, offset: float) -> None:
    scores = [system[metric] for system in report["systems"].values()]
    means = [score["mean"] for score in scores]
    below = [score["mean"] - score["low"] for score in scores]
    above = [score["high"] - score["mean"] for score in scores]
    positions = [index + offset for index in range(len(scores))]
    # A bar of full length touches the edge: its interval must not be clipped.
    style = {"capsize": 3, "ecolor": "#555555", "color": _COLORS[metric], "error_kw": {"clip_on": False}}
    axes.barh(positions, means, _BAR_HEIGHT, xerr=[below, above], label=metric, **style)
    for position, mean in zip(positions, means, strict=True):
        # At the start of the bar, where no interval crosses the text.
        axes.text(0.02, position, f"{mean:.2f}", va="center", fontsize=8)
