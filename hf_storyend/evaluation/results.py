"""The result of an evaluation: metrics and endings, as tables, as JSON, and as files that the Hub reads."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, EvalResultEntry, ModelCardData, eval_result_entries_to_yaml
from huggingface_hub.utils import yaml_dump

from ..files import atomic_write, make_directory, remove_leftovers
from ..modeling.decoding import describe_decoding
from .ablation_results import Ablations
from .gender_swap_result import GenderSwap

METRIC_TITLES = {
    "perplexity": "Perplexity, full softmax",
    "perplexity_rare_words": "Perplexity, stories with rare words",
    "user_triple_gain": "Log-probability of the tail of an own triple, gain in nats",
    "sampled_perplexity": "Perplexity, sampled softmax (the paper's protocol)",
    "sampled_perplexity_std": "... its standard deviation over seeds",
    "bleu_1": "BLEU-1",
    "bleu_2": "BLEU-2",
    "bleu_1_cased": "BLEU-1, cased",
    "bleu_2_cased": "BLEU-2, cased",
    "rouge_l": "ROUGE-L",
    "distinct_1": "Distinct-1, %",
    "distinct_2": "Distinct-2, %",
    "repetition": "Endings with a repeated bigram, %",
    "length": "Tokens per ending",
    "context_copies": "Endings that copy a context sentence, %",
    "training_overlap": "Endings identical to a training ending, %",
    "knowledge_use": "Words that are a tail of a context triple, %",
    "knowledge_use_content": "... among words of the knowledge graph, %",
    "cloze_accuracy": "Story Cloze accuracy, %",
    "cloze_accuracy_normalised": "Story Cloze accuracy, by mean log likelihood, %",
    "stories_per_second": "Stories per second",
}
# Names that older versions wrote into result files.
_OLD_METRICS = {"recited": "training_overlap"}
_BASELINE_TITLES = {
    "constant_ending": "one constant ending",
    "last_sentence": "copy of the last sentence",
    "reference": "people",
}


def current_metrics(metrics: Mapping[str, float]) -> dict[str, float]:
    """Rename the metrics of older result files."""
    return {_OLD_METRICS.get(name, name): value for name, value in metrics.items()}


@dataclass
class Evaluation:
    """
    Metrics of a system, and its endings. BLEU, ROUGE-L and shares are percentages.

    Args:
        metrics: Values by the names in `METRIC_TITLES`.
        endings: For each story, in order, `row`, `context`, `reference` and `ending`; for a model also the `loss` of
            the reference, summed over its `num_words`.
        intervals: 95 % confidence intervals of metrics, as (low, high).
        trivial_baselines: Metrics of trivial baselines and of the references themselves.
        significance: Paired tests against a baseline: for each metric the `baseline`'s value and the `p_value`.
        signatures: sacrebleu's signature of each BLEU score.
        constant_ending: Ending of the constant baseline.
        num_stories: Number of stories.
        ablations: Perplexity without parts of the input or of the model.
        generation: Arguments of `generate()` that the endings were decoded with; empty for endings from a file.
        gender_swap: What changes if `he` and `she` change places in stories.
    """

    metrics: dict[str, float]
    endings: list[dict[str, Any]] = field(default_factory=list)
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    trivial_baselines: dict[str, dict[str, float]] = field(default_factory=dict)
    significance: dict[str, dict[str, float]] = field(default_factory=dict)
    signatures: dict[str, str] = field(default_factory=dict)
    constant_ending: str | None = None
    num_stories: int = 0
    ablations: Ablations | None = None
    generation: dict[str, Any] = field(default_factory=dict)
    gender_swap: GenderSwap | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return all but the endings, ready for JSON."""
        return {
            "num_stories": self.num_stories,
            "metrics": self.metrics,
            "intervals": {name: list(bounds) for name, bounds in self.intervals.items()},
            "trivial_baselines": self.trivial_baselines,
            "significance": self.significance,
            "signatures": self.signatures,
            "constant_ending": self.constant_ending,
            "ablations": None if self.ablations is None else self.ablations.to_dict(),
            "generation": self.generation,
            "gender_swap": None if self.gender_swap is None else self.gender_swap.to_dict(),
        }

    def to_json(self) -> str:
        """Return all but the endings as JSON."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False)

    def to_markdown(self, name: str = "system") -> str:
        """Return a Markdown table with the trivial baselines beside the system."""
        return compare_in_table({name: self})


def compare_in_table(evaluations: Mapping[str, Evaluation]) -> str:
    """Return a Markdown table of systems that were evaluated on the same stories, and of the trivial baselines."""
    first = next(iter(evaluations.values()))
    columns = {name: _cells(evaluation) for name, evaluation in evaluations.items()}
    columns |= {
        _BASELINE_TITLES[name]: _cells(Evaluation(metrics)) for name, metrics in first.trivial_baselines.items()
    }
    used = {metric for cells in columns.values() for metric in cells}
    lines = [_row(f"{first.num_stories} stories", *columns), "| --- |" + " ---: |" * len(columns)]
    for metric, title in METRIC_TITLES.items():
        if metric in used:
            lines.append(_row(title, *(cells.get(metric, "") for cells in columns.values())))
    for name, evaluation in evaluations.items():
        lines += _significance_table(name, evaluation)
        if evaluation.ablations is not None:
            lines += ["", evaluation.ablations.to_markdown()]
        if evaluation.gender_swap is not None:
            lines += ["", evaluation.gender_swap.to_markdown()]
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
    notes = ["- BLEU, ROUGE-L and shares are percentages"]
    if evaluation.generation:
        notes.append(f"- endings: {describe_decoding(evaluation.generation)}")
    notes += [f"- {METRIC_TITLES[name]}: `{signature}`" for name, signature in evaluation.signatures.items()]
    if evaluation.constant_ending is not None:
        notes.append(f"- the constant ending: {_escaped(evaluation.constant_ending)}")
    if evaluation.intervals:
        notes.append("- in brackets: 95 % confidence intervals by bootstrap over stories")
    return notes


def _row(*cells: str) -> str:
    return f"| {' | '.join(map(_escaped, cells))} |"


def _escaped(text: str) -> str:
    """Escape text so that it neither ends a cell nor starts an HTML element."""
    return " ".join(text.split()).replace("|", r"\|").replace("<", r"\<")


# Metric types of the Hub; other metrics keep their names.
_METRIC_TYPES = {
    "perplexity_rare_words": "perplexity",
    "sampled_perplexity": "perplexity",
    "bleu_1": "bleu",
    "bleu_2": "bleu",
    "bleu_1_cased": "bleu",
    "bleu_2_cased": "bleu",
    "rouge_l": "rouge",
    "cloze_accuracy": "accuracy",
    "cloze_accuracy_normalised": "accuracy",
}
# They describe the machine or another metric, not the model.
_NOT_PUBLISHED = ("stories_per_second", "sampled_perplexity_std")


def model_index(evaluation: Evaluation, model_name: str, dataset_id: str, split: str) -> str:
    """Return the block `model-index` of a model card as YAML, to be put between its `---` lines."""
    results = [
        EvalResult(
            task_type="text-generation",
            task_name="Story ending generation",
            dataset_type=dataset_id,
            dataset_name=dataset_id,
            dataset_split=split,
            metric_type=_METRIC_TYPES.get(name, name),
            metric_name=METRIC_TITLES[name],
            metric_value=round(value, 4),
            metric_args={"signature": evaluation.signatures[name]} if name in evaluation.signatures else None,
        )
        for name, value in _published(evaluation).items()
    ]
    return ModelCardData(model_name=model_name, eval_results=results).to_yaml() + "\n"


def eval_results(evaluation: Evaluation, dataset_id: str) -> str:
    """
    Return the content of a model's `.eval_results/NAME.yaml`: each metric as a task of the dataset `dataset_id`.

    The Hub shows them if that dataset declares itself a benchmark with tasks of these names.
    """
    today = datetime.now(UTC).date().isoformat()
    entries = [
        EvalResultEntry(
            dataset_id=dataset_id,
            task_id=name,
            value=round(value, 4),
            date=today,
            notes=evaluation.signatures.get(name, METRIC_TITLES[name]),
        )
        for name, value in _published(evaluation).items()
    ]
    return yaml_dump(eval_result_entries_to_yaml(entries), sort_keys=False)


def _published(evaluation: Evaluation) -> dict[str, float]:
    return {name: value for name, value in evaluation.metrics.items() if name not in _NOT_PUBLISHED}


def save_evaluation(
    evaluation: Evaluation, output_dir: str | Path, *, name: str, dataset_id: str, split: str = "test"
) -> None:
    """
    Write `evaluation.json`, the table `evaluation.md`, `endings.jsonl`, `model_index.yaml` for the model card and
    `.eval_results/storyend.yaml`. Existing files of these names are replaced, not what they are links to.

    Args:
        evaluation: The evaluation.
        output_dir: Directory to write to; it is created if needed.
        name: Name of the system.
        dataset_id: Name of the stories, preferably their Hub id.
        split: Split of the stories.
    """
    files = {
        "evaluation.json": evaluation.to_json() + "\n",
        "evaluation.md": evaluation.to_markdown(name),
        "model_index.yaml": model_index(evaluation, name, dataset_id, split),
        ".eval_results/storyend.yaml": eval_results(evaluation, dataset_id),
    }
    if evaluation.endings:
        lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in evaluation.endings]
        files["endings.jsonl"] = "".join(lines)
    for file, content in files.items():
        path = Path(output_dir) / file
        if path.parent.is_symlink() and path.parent != Path(output_dir):
            raise ValueError(f"{path.parent} is a link: nothing is written to where it leads. Delete it.")
        make_directory(path.parent)
        remove_leftovers(path.parent, re.escape(path.name))
        # A link is replaced: in somebody's model, or in the cache of the Hub, it may lead to anything.
        atomic_write(path, content)
