"""Files of a finished run: a directory for `from_pretrained` and the Hub, with metrics, curves and a model card."""

from __future__ import annotations

import json
import platform
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from transformers.utils import logging as transformers_logging

from ..evaluation.results import Evaluation
from ..files import atomic_directory, reset_permissions, temporary_sibling
from ..hub.card import render_card
from ..manifest import ManifestError, find_damage, publish_files, read_manifest, write_manifest
from ..modeling import IncrementalEncoderForEndingGeneration, IncrementalEncoderTokenizer
from .checkpoints import BEST, RESULTS, RunState
from .data import TrainingData
from .options import TrainingOptions
from .progress import TrainingLog


def write_results(
    directory: Path,
    model: IncrementalEncoderForEndingGeneration,
    weights: dict[str, torch.Tensor],
    tokenizer: IncrementalEncoderTokenizer,
    evaluation: Evaluation,
    run: dict[str, Any],
    log: TrainingLog,
    state: RunState,
    identity: str,
) -> None:
    """Write all files of a finished run with their manifest; after a crash, all of them are new or none."""
    folder = temporary_sibling(directory / RESULTS, "partial")
    folder.mkdir()
    try:
        save_model(folder, model, weights, tokenizer)
        _write_json(folder / "metrics.json", {"run": run, "validation": evaluation.metrics})
        _write_json(folder / "trainer_state.json", _trainer_state(state, log))
        (folder / "validation_endings.jsonl").write_text(
            "".join(json.dumps(ending, ensure_ascii=False) + "\n" for ending in evaluation.endings), encoding="utf-8"
        )
        (folder / "README.md").write_text(render_card(run["system"], run, evaluation.metrics), encoding="utf-8")
        draw_curves(log.events, folder / "curves.png", f"{run['system']} on {run['data']}")
        reset_permissions(folder)
        write_manifest(folder, "model", step=state.step, best_step=state.best_step, identity=identity)
        publish_files(folder, directory)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write_best_model(
    directory: Path,
    model: IncrementalEncoderForEndingGeneration,
    weights: dict[str, torch.Tensor],
    tokenizer: IncrementalEncoderTokenizer,
    state: RunState,
    identity: str,
) -> None:
    """Replace the best model so far; its manifest says of which run and update it is."""
    with atomic_directory(directory / BEST) as folder:
        save_model(folder, model, weights, tokenizer)
        write_manifest(folder, "best model", step=state.best_step, metric=state.best_metric, identity=identity)


def problem_with_best_model(directory: Path, state: RunState, identity: str) -> str | None:
    """Return why `best/` is not the best model of this run, None if it is."""
    try:
        about, damage = read_manifest(directory / BEST)["about"], find_damage(directory / BEST)
    except ManifestError as error:
        return str(error)
    if damage:
        return f"{directory / BEST} is damaged: {', '.join(damage)}"
    if (about.get("step"), about.get("identity")) != (state.best_step, identity):
        return (
            f"{directory / BEST} is of update {about.get('step')} or of another run, not of update {state.best_step}"
        )
    return None


def save_model(
    directory: Path,
    model: IncrementalEncoderForEndingGeneration,
    weights: dict[str, torch.Tensor],
    tokenizer: IncrementalEncoderTokenizer,
) -> None:
    """Save model, generation configuration, remote code and tokenizer for `from_pretrained`."""
    with without_progress_bars():
        model.save_pretrained(directory, state_dict=weights)
        tokenizer.save_pretrained(directory)


def describe_run(
    options: TrainingOptions,
    state: RunState,
    log: TrainingLog,
    accelerator: Accelerator,
    data: TrainingData,
    num_parameters: int,
) -> dict[str, Any]:
    """Return what `metrics.json` and the model card say about a run."""
    rates = [event["stories_per_second"] for event in log.events if "stories_per_second" in event]
    memory = [event["peak_memory_mb"] for event in log.events if "peak_memory_mb" in event]
    return {
        "system": options.system,
        "data": data.name,
        "sources": data.sources,
        "earlier_runs": earlier_runs(options.model_name_or_path),
        "parameters": num_parameters,
        "updates": state.step,
        "epochs": log.events[-1]["epoch"] if log.events else 0,
        "minutes": round(state.elapsed / 60, 1),
        "stories_per_second": round(sum(rates) / len(rates), 1) if rates else None,
        "peak_memory_mb": max(memory, default=None),
        "best_step": state.best_step,
        "num_processes": accelerator.num_processes,
        "device": _device_name(accelerator),
        "precision": str(accelerator.mixed_precision),
        "versions": {name: version(name) for name in ("hf_storyend", "torch", "transformers", "accelerate")},
        "python": platform.python_version(),
        "options": options.to_dict(),
    }


def earlier_runs(model: str | None) -> list[dict[str, Any] | None]:
    """
    Return updates, epochs and minutes of the runs that the weights to start from come from, first one first.

    None stands for runs that nothing is known of.
    """
    if model is None:
        return []
    try:
        run = json.loads((Path(model) / "metrics.json").read_text(encoding="utf-8"))["run"]
        # Runs of earlier versions did not say what they started from.
        unknown = [None] if run["options"].get("model_name_or_path") else []
        return [*run.get("earlier_runs", unknown), {name: run[name] for name in ("updates", "epochs", "minutes")}]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return [None]


def draw_curves(events: Sequence[dict[str, Any]], path: Path, title: str) -> bool:
    """
    Plot perplexity, BLEU and learning rate over the updates as PNG.

    Returns:
        False if there is nothing to plot, or matplotlib is not installed (`pip install "hf_storyend[plots]"`).
    """
    if not events:
        return False
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return False
    events = _comparable(events)
    figure = Figure(figsize=(10, 3.4), layout="constrained")
    perplexity, bleu, learning_rate = figure.subplots(1, 3)
    _plot(perplexity, events, {"perplexity": "training", "eval_perplexity": "validation"})
    perplexity.set_yscale("log")
    perplexity.set_title("perplexity of endings")
    _plot(bleu, events, {"eval_bleu_1": "BLEU-1", "eval_bleu_2": "BLEU-2"})
    bleu.set_title("BLEU on validation")
    _plot(learning_rate, events, {"learning_rate": "learning rate"})
    learning_rate.set_title("learning rate")
    figure.suptitle(title)
    figure.savefig(path, dpi=120)
    return True


def _comparable(events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Drop evaluations on more stories than the first had, such as the final one: they would add a jump."""
    counts = [event["eval_num_stories"] for event in events if "eval_num_stories" in event]
    return [event for event in events if "eval_num_stories" not in event or event["eval_num_stories"] == counts[0]]


def _plot(axes: Any, events: Sequence[dict[str, Any]], lines: dict[str, str]) -> None:
    for name, label in lines.items():
        points = [(event["step"], event[name]) for event in events if name in event]
        if points:
            axes.plot(*zip(*points, strict=True), marker="o" if len(points) < 40 else "", markersize=3, label=label)
    axes.set_xlabel("updates")
    axes.grid(alpha=0.3)
    if axes.lines and len(lines) > 1:
        axes.legend()


def _trainer_state(state: RunState, log: TrainingLog) -> dict[str, Any]:
    """Return the state with the names of transformers' `TrainerState`."""
    return {
        "global_step": state.step,
        "epoch": state.epoch,
        "best_metric": state.best_metric,
        "best_global_step": state.best_step,
        "total_seconds": state.elapsed,
        "log_history": log.events,
    }


def _device_name(accelerator: Accelerator) -> str:
    if accelerator.device.type == "cuda":
        return torch.cuda.get_device_name(accelerator.device)
    return f"{accelerator.device.type} ({torch.get_num_threads()} threads a process)"


@contextmanager
def without_progress_bars() -> Iterator[None]:
    """Disable the bars of `from_pretrained` and `save_pretrained`, which would break up the run's own bar."""
    was_enabled = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        if was_enabled:
            transformers_logging.enable_progress_bar()


def _write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
