"""Train and evaluate systems one after the other; what is done is not done again."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..directories import replace_file
from ..evaluation import EvaluationOptions, evaluate_pretrained, save_evaluation
from ..systems import SYSTEMS, find_system
from ..training import TrainingOptions, load_training_data, train
from .table import draw_table, markdown_table

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
        replace_file(output / "comparison.json", json.dumps(comparison, indent=1) + "\n")
        replace_file(output / "comparison.md", markdown_table(comparison))
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
    evaluation = evaluate_pretrained(
        str(directory),
        str(data),
        split=options.split,
        options=EvaluationOptions(
            batch_size=training.per_device_eval_batch_size,
            generation=options.generation,
            max_stories=options.max_stories,
            seed=training.seed,
        ),
    )
    save_evaluation(evaluation, directory / options.split, name=name, dataset_id=data.name, split=options.split)
    run = json.loads((directory / "metrics.json").read_text(encoding="utf-8"))["run"]
    result = {
        "asked": asked,
        "metrics": evaluation.metrics,
        "floors": evaluation.floors,
        "num_stories": evaluation.num_stories,
        "parameters": run["parameters"],
        "updates": run["updates"],
        "minutes": run["minutes"],
        "stories_per_second": run["stories_per_second"],
        "device": run["device"],
    }
    replace_file(directory / RESULT, json.dumps(result, indent=1) + "\n")
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
