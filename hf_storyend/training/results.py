"""What a run leaves behind: one directory that `from_pretrained` and the Hub can take as it is."""

from __future__ import annotations

import json
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from transformers.utils import logging

from ..evaluation import Evaluation
from ..hub import render_card
from ..modeling import IncrementalEncoderForEndingGeneration, IncrementalEncoderTokenizer
from .curves import draw_curves
from .history import History
from .options import TrainingOptions
from .run_state import RunState


def save_model(
    directory: Path,
    model: IncrementalEncoderForEndingGeneration,
    weights: dict[str, torch.Tensor],
    tokenizer: IncrementalEncoderTokenizer,
) -> None:
    """Model, generation settings, code and tokenizer, for `from_pretrained`."""
    with _no_bars():
        model.save_pretrained(directory, state_dict=weights)
        tokenizer.save_pretrained(directory)


def describe_run(
    options: TrainingOptions,
    state: RunState,
    history: History,
    accelerator: Accelerator,
    data: str,
    num_parameters: int,
) -> dict[str, Any]:
    """The facts of a run that its card and its readers want, as measured."""
    rates = [event["stories_per_second"] for event in history.events if "stories_per_second" in event]
    memory = [event["peak_memory_mb"] for event in history.events if "peak_memory_mb" in event]
    return {
        "system": options.system,
        "data": data,
        "parameters": num_parameters,
        "updates": state.step,
        "epochs": history.events[-1]["epoch"] if history.events else 0,
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


def write_results(
    directory: Path,
    model: IncrementalEncoderForEndingGeneration,
    weights: dict[str, torch.Tensor],
    tokenizer: IncrementalEncoderTokenizer,
    evaluation: Evaluation,
    run: dict[str, Any],
    history: History,
    state: RunState,
) -> None:
    """All files of a finished run; each appears whole."""
    folder = Path(tempfile.mkdtemp(prefix=".results.", suffix=".partial", dir=directory))
    try:
        save_model(folder, model, weights, tokenizer)
        metrics = {"run": run, "validation": evaluation.metrics}
        _write_json(folder / "metrics.json", metrics)
        _write_json(folder / "trainer_state.json", _trainer_state(state, history))
        (folder / "validation_endings.jsonl").write_text(
            "".join(json.dumps(ending, ensure_ascii=False) + "\n" for ending in evaluation.endings), encoding="utf-8"
        )
        (folder / "README.md").write_text(render_card(run["system"], run, evaluation.metrics), encoding="utf-8")
        draw_curves(history.events, folder / "curves.png", f"{run['system']} on {run['data']}")
        for path in folder.iterdir():
            os.replace(path, directory / path.name)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _no_bars() -> Iterator[None]:
    """Bars for what takes a moment would only tear the run's own bar."""
    was_enabled = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if was_enabled:
            logging.enable_progress_bar()


def _trainer_state(state: RunState, history: History) -> dict[str, Any]:
    """Named as transformers' Trainer names them."""
    return {
        "global_step": state.step,
        "epoch": state.epoch,
        "best_metric": state.best_metric,
        "best_global_step": state.best_step,
        "total_seconds": state.elapsed,
        "log_history": history.events,
    }


def _device_name(accelerator: Accelerator) -> str:
    if accelerator.device.type == "cuda":
        return torch.cuda.get_device_name(accelerator.device)
    return f"{accelerator.device.type} ({torch.get_num_threads()} threads a process)"


def _write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
