"""The result of an evaluation, as numbers, as JSON and as a table to read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

METRIC_TITLES = {
    "perplexity": "Perplexity, full softmax",
    "sampled_perplexity": "Perplexity, sampled softmax (the paper's protocol)",
    "sampled_perplexity_std": "... its standard deviation over seeds",
    "bleu_1": "BLEU-1",
    "bleu_2": "BLEU-2",
    "bleu_1_cased": "BLEU-1, cased",
    "bleu_2_cased": "BLEU-2, cased",
    "rouge_l": "ROUGE-L",
    "distinct_1": "Distinct-1, %",
    "distinct_2": "Distinct-2, %",
    "repetition": "Endings with a repeated pair of words, %",
    "length": "Words and marks an ending",
    "context_copies": "Endings that copy a context sentence, %",
    "recited": "Endings that stand word for word among the training endings, %",
    "knowledge_use": "Words that are a tail of a context triple, %",
    "knowledge_use_content": "... of the words that the knowledge knows, %",
    "cloze_accuracy": "Story Cloze accuracy, %",
    "cloze_accuracy_normalised": "Story Cloze accuracy, by mean log likelihood, %",
    "stories_per_second": "Stories a second",
}
_FLOOR_TITLES = {
    "constant_ending": "one constant ending",
    "last_sentence": "copy of the last sentence",
    "reference": "people",
}


@dataclass
class Evaluation:
    """
    Numbers about a system and the endings it wrote. BLEU, ROUGE-L and shares are percents from 0 to 100.

    Args:
        metrics: By flat, stable names, those of `METRIC_TITLES`.
        endings: For each story, in order, `row`, `context`, `reference` and `ending`; of a model also the `loss` of
            the reference, summed over its `num_words`.
        intervals: 95 % confidence intervals of metrics, as (low, high).
        floors: Metrics of trivial systems, and of the references themselves.
        significance: Comparison with a baseline: for each metric its value there, `baseline`, and the `p_value`.
        signatures: What sacrebleu says of how it computed each BLEU.
        constant_ending: What the trivial system writes.
        num_stories: How many stories the numbers are about.
    """

    metrics: dict[str, float]
    endings: list[dict[str, Any]] = field(default_factory=list)
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    floors: dict[str, dict[str, float]] = field(default_factory=dict)
    significance: dict[str, dict[str, float]] = field(default_factory=dict)
    signatures: dict[str, str] = field(default_factory=dict)
    constant_ending: str | None = None
    num_stories: int = 0

    def to_dict(self) -> dict[str, Any]:
        """All but the endings, as JSON can hold it."""
        return {
            "num_stories": self.num_stories,
            "metrics": self.metrics,
            "intervals": {name: list(bounds) for name, bounds in self.intervals.items()},
            "floors": self.floors,
            "significance": self.significance,
            "signatures": self.signatures,
            "constant_ending": self.constant_ending,
        }

    def to_json(self) -> str:
        """All but the endings, as text."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False)

    def to_markdown(self, name: str = "system") -> str:
        """A table of metrics with the trivial systems beside this one, and how BLEU was computed."""
        return compare_in_table({name: self})


def compare_in_table(evaluations: Mapping[str, Evaluation]) -> str:
    """Systems that were evaluated on the same stories in one Markdown table, the trivial systems beside them."""
    first = next(iter(evaluations.values()))
    columns = {name: _cells(evaluation) for name, evaluation in evaluations.items()}
    columns |= {_FLOOR_TITLES[name]: _cells(Evaluation(metrics)) for name, metrics in first.floors.items()}
    used = {metric for cells in columns.values() for metric in cells}
    lines = [_row(f"{first.num_stories} stories", *columns), "| --- |" + " ---: |" * len(columns)]
    for metric, title in METRIC_TITLES.items():
        if metric in used:
            lines.append(_row(title, *(cells.get(metric, "") for cells in columns.values())))
    for name, evaluation in evaluations.items():
        lines += _significance_table(name, evaluation)
    return "\n".join([*lines, "", *_notes(first), ""])


def _cells(evaluation: Evaluation) -> dict[str, str]:
    cells = {metric: f"{value:.2f}" for metric, value in evaluation.metrics.items()}
    for metric, (low, high) in evaluation.intervals.items():
        cells[metric] += f" [{low:.2f}, {high:.2f}]"
    return cells


def _significance_table(name: str, evaluation: Evaluation) -> list[str]:
    if not evaluation.significance:
        return []
    lines = ["", _row("paired test", name, "baseline", "p"), "| --- | ---: | ---: | ---: |"]
    for metric, result in evaluation.significance.items():
        own, other, p_value = evaluation.metrics[metric], result["baseline"], result["p_value"]
        lines.append(_row(METRIC_TITLES[metric], f"{own:.2f}", f"{other:.2f}", f"{p_value:.4f}"))
    return lines


def _notes(evaluation: Evaluation) -> list[str]:
    notes = ["- BLEU, ROUGE-L and shares are percents"]
    notes += [f"- {METRIC_TITLES[name]}: `{signature}`" for name, signature in evaluation.signatures.items()]
    if evaluation.constant_ending is not None:
        notes.append(f"- the constant ending: {_escaped(evaluation.constant_ending)}")
    if evaluation.intervals:
        notes.append("- in brackets: 95 % confidence intervals by bootstrap over stories")
    return notes


def _row(*cells: str) -> str:
    return f"| {' | '.join(map(_escaped, cells))} |"


def _escaped(text: str) -> str:
    """Text that can neither end a cell nor start an HTML element."""
    return " ".join(text.split()).replace("|", r"\|").replace("<", r"\<")
