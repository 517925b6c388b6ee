"""Comparison of systems: each is trained under the same budget and evaluated, into one table beside the paper's."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

from .evaluation.options import EvaluateOptions
from .evaluation.run import evaluate
from .files import atomic_write, remove_leftovers
from .systems import find_system
from .training.data import load_training_data
from .training.option_parsing import read_options
from .training.options import ComparisonOptions, TrainingOptions
from .training.run import train

logger = logging.getLogger(__name__)

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
_COLUMNS = {
    "perplexity": "PPL true",
    "sampled_perplexity": "PPL sampled",
    "bleu_1": "BLEU-1",
    "bleu_2": "BLEU-2",
    "distinct_2": "distinct-2",
}
_BASELINES = {"constant_ending": "one constant ending", "last_sentence": "copy of the last sentence"}
_RESULT = "result.json"


def compare(options: ComparisonOptions | None = None, training: TrainingOptions | None = None) -> dict[str, Any]:
    """
    Train and evaluate systems, and write `comparison.json`, `comparison.md` and `comparison.png` into `output_dir`.

    The run of each system is in `output_dir/systems`. Called again, finished systems are skipped and an interrupted
    training resumes.

    Args:
        options: Systems, data, budget and evaluation; default: all systems on the package's stories.
        training: Options of every training run, except `system` and `output_dir`; default: those that `options` give.

    Returns:
        The content of `comparison.json`.
    """
    options = options or ComparisonOptions()
    training = training or read_options(options.options_file, **options.training_overrides())
    data_dir = load_training_data(training).directory
    output = Path(options.output_dir)
    if output.is_dir():
        remove_leftovers(output, r"comparison\.(?:json|md)")
    results: dict[str, Any] = {}
    for name in options.system_names:
        run = replace(training, system=name, output_dir=str(output / "systems" / name))
        results[name] = _finished_result(run, options) or _train_and_evaluate(run, options, data_dir)
        # Written after every system, to show intermediate results.
        comparison = {"budget": _describe_budget(training), "split": options.split, "systems": results}
        atomic_write(output / "comparison.json", json.dumps(comparison, indent=1) + "\n")
        atomic_write(output / "comparison.md", markdown_table(comparison))
        draw_chart(comparison, output / "comparison.png")
    return comparison


def markdown_table(comparison: dict[str, Any]) -> str:
    """Return Table 1 of the paper as measured, with the paper's numbers at the right and trivial baselines below."""
    systems = comparison["systems"]
    head = ["system", *_COLUMNS.values(), "parameters", "stories/s", "paper: PPL sampled", "BLEU-1", "BLEU-2"]
    lines = [_row(head), _row(["---", *["---:"] * (len(head) - 1)])]
    for name, result in systems.items():
        paper = [f"{value:.2f}" for value in PAPER_TABLE.get(name, ())] or ["-"] * 3
        rate = result["stories_per_second"]
        own = [f"{result['parameters']:,}", "not measured" if rate is None else f"{rate:.1f}"]
        lines.append(_row([find_system(name).paper_name or name, *_cells(result["metrics"]), *own, *paper]))
    first = next(iter(systems.values()))
    for name, title in _BASELINES.items():
        if name in first["trivial_baselines"]:
            lines.append(_row([title, *_cells(first["trivial_baselines"][name]), *["-"] * 5]))
    note = (
        f"{first['num_stories']:,} stories ({comparison['split']}); budget of each system: {comparison['budget']}. "
        "BLEU: sacrebleu, lower-cased, 13a. The paper's perplexity is a sampled one. "
        f"Measured on {first['device']}."
    )
    return "\n".join([*lines, "", note, ""])


def draw_chart(comparison: dict[str, Any], path: Path) -> bool:
    """Draw the table as a bar chart, with the paper's numbers; returns False if matplotlib is not installed."""
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
    figure.suptitle(f"Budget of each system: {comparison['budget']}")
    figure.savefig(path, dpi=120)
    return True


def _finished_result(run: TrainingOptions, options: ComparisonOptions) -> dict[str, Any] | None:
    """Return the saved result of a system, if there is one with the same settings."""
    try:
        result = json.loads((Path(run.output_dir) / _RESULT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(result, dict) or result.get("settings") != _settings(run, options):
        return None
    logger.info("%s: already finished.", run.system)
    return result


def _train_and_evaluate(run: TrainingOptions, options: ComparisonOptions, data_dir: Path) -> dict[str, Any]:
    directory = Path(run.output_dir)
    logger.info("%s: training.", run.system)
    train(run)
    logger.info("%s: evaluating on %s.", run.system, options.split)
    evaluation = evaluate(
        EvaluateOptions(
            model=str(directory),
            data_dir=str(data_dir),
            split=options.split,
            output_dir=str(directory / options.split),
            batch_size=run.per_device_eval_batch_size,
            num_beams=options.num_beams,
            max_new_tokens=options.max_new_tokens,
            max_stories=options.max_stories,
            bootstrap_samples=0,
            name=run.system,
            seed=run.seed,
        )
    )
    facts = json.loads((directory / "metrics.json").read_text(encoding="utf-8"))["run"]
    result = {
        "settings": _settings(run, options),
        "metrics": evaluation.metrics,
        "trivial_baselines": evaluation.trivial_baselines,
        "num_stories": evaluation.num_stories,
        **{name: facts[name] for name in ("parameters", "updates", "minutes", "stories_per_second", "device")},
    }
    atomic_write(directory / _RESULT, json.dumps(result, indent=1) + "\n")
    return result


def _settings(run: TrainingOptions, options: ComparisonOptions) -> dict[str, Any]:
    """Return what a saved result must agree on to be used again."""
    evaluation = ("split", "num_beams", "max_new_tokens", "max_stories")
    return {
        "training": {**run.to_dict(), "output_dir": None, "resume_from_checkpoint": None},
        **{name: getattr(options, name) for name in evaluation},
    }


def _describe_budget(training: TrainingOptions) -> str:
    if training.max_minutes is not None:
        return f"{training.max_minutes:g} minutes of training"
    if training.max_steps > 0:
        return f"{training.max_steps:,} updates of {training.per_device_train_batch_size} stories a process"
    return f"{training.num_train_epochs:g} epochs"


def _cells(metrics: dict[str, float]) -> list[str]:
    return [f"{metrics[name]:.2f}" if name in metrics else "-" for name in _COLUMNS]


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
