"""Train and evaluate systems one after the other; what is done is not done again."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .evaluation import EvaluateOptions, evaluate
from .files import atomic_write
from .systems import SYSTEMS, find_system
from .training import TrainingOptions, load_training_data, train

# System: perplexity (sampled softmax), BLEU-1, BLEU-2, the last two in percent.
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


_COLUMNS = {
    "perplexity": "PPL true",
    "sampled_perplexity": "PPL sampled",
    "bleu_1": "BLEU-1",
    "bleu_2": "BLEU-2",
    "distinct_2": "distinct-2",
}
_BASELINES = {"constant_ending": "one constant ending", "last_sentence": "copy of the last sentence"}


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
    # Results of older versions call them floors.
    baselines = first.get("trivial_baselines") or first.get("floors", {})
    for name, title in _BASELINES.items():
        if name in baselines:
            lines.append(_row([title, *_cells(baselines[name]), *["-"] * 5]))
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


RESULT = "result.json"


@dataclass(frozen=True)
class ComparisonOptions:
    """
    Args:
        systems: Names of the systems; all of them unless given.
        training: Options of every training run. Its `max_steps`, `num_train_epochs` or `max_minutes` are the budget
            that each system gets; `system` and `output_dir` are set for each.
        split: Which stories to evaluate on.
        generation: Arguments of `generate()`.
        max_stories: Evaluate on the first so many only.
    """

    systems: tuple[str, ...] = tuple(SYSTEMS)
    training: TrainingOptions = field(default_factory=TrainingOptions)
    split: str = "test"
    generation: dict[str, Any] = field(default_factory=dict)
    max_stories: int | None = None

    def __post_init__(self) -> None:
        if not self.systems:
            raise ValueError("`systems` is empty: there is nothing to compare.")
        for name in self.systems:
            find_system(name)


def compare(
    options: ComparisonOptions, output: str | Path, say: Callable[[str], None] = lambda text: None
) -> dict[str, Any]:
    """
    Write `comparison.json`, `comparison.md` and `comparison.png` into `output`, with a directory for each system
    beside them, and return the content of the first. Called again, it takes the systems that are done from there and
    goes on with the one that was being trained.
    """
    output = Path(output)
    data = load_training_data(options.training).directory
    results = {}
    for name in options.systems:
        results[name] = _result_of(name, options, output / "systems" / name, data, say)
        # After every system, so that a look into the directory shows how far it is.
        comparison = {"budget": _budget(options.training), "split": options.split, "systems": results}
        atomic_write(output / "comparison.json", json.dumps(comparison, indent=1) + "\n")
        atomic_write(output / "comparison.md", markdown_table(comparison))
        draw_table(comparison, output / "comparison.png")
    return comparison


def _result_of(
    name: str, options: ComparisonOptions, directory: Path, data: Path, say: Callable[[str], None]
) -> dict[str, Any]:
    training = replace(options.training, system=name, output_dir=str(directory))
    asked = {
        "training": {**training.to_dict(), "output_dir": None, "resume": None},
        "split": options.split,
        "generation": options.generation,
        "max_stories": options.max_stories,
    }
    done = _read_result(directory / RESULT)
    if done is not None and done["asked"] == asked:
        say(f"{name}: done before.")
        return done
    say(f"{name}: training.")
    train(training)
    say(f"{name}: evaluating on {options.split}.")
    evaluation = evaluate(
        EvaluateOptions(
            model=str(directory),
            data_dir=str(data),
            split=options.split,
            output_dir=str(directory / options.split),
            batch_size=training.per_device_eval_batch_size,
            max_stories=options.max_stories,
            bootstrap_samples=0,
            name=name,
            dataset_id=data.name,
            seed=training.seed,
            **options.generation,
        )
    )
    run = json.loads((directory / "metrics.json").read_text(encoding="utf-8"))["run"]
    result = {
        "asked": asked,
        "metrics": evaluation.metrics,
        "trivial_baselines": evaluation.trivial_baselines,
        "num_stories": evaluation.num_stories,
        "parameters": run["parameters"],
        "updates": run["updates"],
        "minutes": run["minutes"],
        "stories_per_second": run["stories_per_second"],
        "device": run["device"],
    }
    atomic_write(directory / RESULT, json.dumps(result, indent=1) + "\n")
    return result


def _read_result(path: Path) -> dict[str, Any] | None:
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return result if isinstance(result, dict) and "asked" in result else None


def _budget(training: TrainingOptions) -> str:
    """What each system may spend, in words."""
    if training.max_minutes is not None:
        return f"{training.max_minutes:g} minutes of training"
    if training.max_steps > 0:
        return f"{training.max_steps:,} updates of {training.per_device_train_batch_size} stories a process"
    return f"{training.num_train_epochs:g} epochs"
