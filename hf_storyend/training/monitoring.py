"""What a run leaves behind: one directory that `from_pretrained` and the Hub can take as it is."""

from __future__ import annotations

import json
import math
import os
import platform
import resource
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from tqdm.auto import tqdm
from transformers.utils import logging

from ..evaluation import Evaluation
from ..evaluation.results import METRIC_TITLES
from ..files import atomic_write
from ..hub import render_card
from ..modeling import IncrementalEncoderForEndingGeneration, IncrementalEncoderTokenizer
from .checkpoints import RunState
from .options import TrainingOptions

_LOWER_IS_BETTER = {"perplexity", "sampled_perplexity", "repetition", "context_copies", "recited"}
_HIGHER_IS_BETTER = {"bleu_1", "bleu_2", "bleu_1_cased", "bleu_2_cased", "rouge_l", "distinct_1", "distinct_2"}


def check_metric(name: str) -> None:
    """Raise unless models can be compared by the metric of that name."""
    if name not in _LOWER_IS_BETTER | _HIGHER_IS_BETTER:
        names = ", ".join(metric for metric in METRIC_TITLES if metric in _LOWER_IS_BETTER | _HIGHER_IS_BETTER)
        raise ValueError(f"`metric_for_best_model` must be one of {names}; got `{name}`.")


def is_better(name: str, value: float, best: float | None) -> bool:
    """Whether a value is better than the best one so far."""
    if best is None:
        return value == value
    return value < best if name in _LOWER_IS_BETTER else value > best


LOG = "train_log.jsonl"


class History:
    """
    Appends events to `train_log.jsonl`. An event is a dictionary with its `step`; training lines have `loss`,
    evaluations have `eval_...`.
    """

    def __init__(self, directory: Path, writes: bool):
        self.path = directory / LOG
        self.writes = writes
        self.events: list[dict[str, Any]] = []

    def go_back(self, step: int) -> None:
        """Forget what came after `step`: a run that resumes there will tell it again."""
        if self.path.is_file():
            self.events = [event for event in _read_events(self.path) if event["step"] <= step]
        if self.writes and self.path.is_file():
            atomic_write(self.path, "".join(map(_line, self.events)))

    def add(self, event: dict[str, Any]) -> None:
        """Note an event; it is on the disk when this returns."""
        self.events.append(event)
        if self.writes:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(_line(event))


def _line(event: dict[str, Any]) -> str:
    return json.dumps(event, ensure_ascii=False) + "\n"


def _read_events(path: Path) -> list[dict[str, Any]]:
    """Events of a log; a line that a kill cut short is left out."""
    events = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict) and isinstance(event.get("step"), int):
            events.append(event)
    return events


class Progress:
    """
    On a terminal a bar with loss, perplexity, stories a second and time left; in a file, lines. Quiet in all processes
    but the main one.
    """

    def __init__(self, total_steps: int | None, state: RunState, done: float, is_main: bool):
        # `total_steps` is None where the time decides how many there will be; `done` is the share of the run.
        self.total_steps, self.is_main = total_steps, is_main
        self.first_done, self.first_elapsed = done, state.elapsed
        self.num_stories, self.sums = 0, torch.zeros(4, dtype=torch.float64)
        self.bar = tqdm(
            total=total_steps,
            initial=state.step,
            unit="update",
            desc="training",
            disable=not (is_main and sys.stderr.isatty()),
        )
        self._reset(state.elapsed)

    def add(
        self, num_stories: int, elapsed: float, loss: float, ending_loss: float, gradient_norm: float | None
    ) -> None:
        """Count an update; one that was skipped has no gradient norm and does not enter the means."""
        self.num_stories += num_stories
        self.elapsed = elapsed
        if gradient_norm is not None:
            self.sums += torch.tensor((1.0, loss, ending_loss, gradient_norm), dtype=torch.float64)
        self.bar.set_postfix_str(
            f"loss {loss:.3f}, perplexity {perplexity(ending_loss):.1f}, {self.rate:.1f} stories/s", refresh=False
        )
        self.bar.update()

    @property
    def rate(self) -> float:
        """Stories a second since the means were last taken, time for evaluations and checkpoints not counted."""
        return self.num_stories / max(self.elapsed - self.since, 1e-9)

    def take_means(self) -> dict[str, float]:
        """Means since they were last taken."""
        count, *sums = self.sums.tolist()
        numbers = {"stories_per_second": round(self.rate, 2)}
        if count:
            loss, ending_loss, gradient_norm = (total / count for total in sums)
            numbers |= {"loss": loss, "ending_loss": ending_loss, "perplexity": perplexity(ending_loss)}
            numbers["gradient_norm"] = gradient_norm
        self._reset(self.elapsed)
        return numbers

    def tell(self, step: int, done: float, numbers: dict[str, float]) -> None:
        """Where there is no bar, say what it would show."""
        if not self.bar.disable or "loss" not in numbers:
            return
        seconds_a_run = (self.elapsed - self.first_elapsed) / max(done - self.first_done, 1e-9)
        left = tqdm.format_interval((1 - done) * seconds_a_run)
        place = f"step {step}" if self.total_steps is None else f"step {step}/{self.total_steps}"
        self.say(
            f"{place}: loss {numbers['loss']:.3f}, perplexity {numbers['perplexity']:.1f}, "
            f"{numbers['stories_per_second']:.1f} stories/s, {left} left"
        )

    def say(self, text: str) -> None:
        """A line on the terminal, above the bar."""
        if self.is_main:
            self.bar.write(text)
            sys.stdout.flush()

    def close(self) -> None:
        self.bar.close()

    def _reset(self, elapsed: float) -> None:
        self.since = self.elapsed = elapsed
        self.num_stories = 0
        self.sums = torch.zeros(4, dtype=torch.float64)


def perplexity(loss: float) -> float:
    """exp(loss), or infinity where that is too large a number."""
    return math.exp(loss) if loss < 700 else math.inf


def peak_memory_mb(device: torch.device) -> int:
    """Most memory so far: of the GPU, or of this process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) // 2**20
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used // (2**20 if sys.platform == "darwin" else 2**10)


def draw_curves(events: Sequence[dict[str, Any]], path: Path, title: str) -> bool:
    """
    Perplexity of training and validation, BLEU and learning rate over the updates, as PNG. False, and no picture, if
    matplotlib is not installed (`pip install "hf_storyend[plots]"`) or there is nothing to draw yet.
    """
    if not events:
        return False
    events = _comparable(events)
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return False
    figure = Figure(figsize=(10, 3.4), layout="constrained")
    perplexity, bleu, rate = figure.subplots(1, 3)
    _draw(perplexity, events, {"perplexity": "training", "eval_perplexity": "validation"})
    perplexity.set_yscale("log")
    perplexity.set_title("perplexity of endings")
    _draw(bleu, events, {"eval_bleu_1": "BLEU-1", "eval_bleu_2": "BLEU-2"})
    bleu.set_title("BLEU on validation")
    _draw(rate, events, {"learning_rate": "learning rate"})
    rate.set_title("learning rate")
    figure.suptitle(title)
    figure.savefig(path, dpi=120)
    return True


def _comparable(events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without evaluations on more stories than the first one had, such as the last: they would make a step."""
    counts = [event["eval_num_stories"] for event in events if "eval_num_stories" in event]
    return [event for event in events if "eval_num_stories" not in event or event["eval_num_stories"] == counts[0]]


def _draw(axes: Any, events: Sequence[dict[str, Any]], lines: dict[str, str]) -> None:
    for name, label in lines.items():
        points = [(event["step"], event[name]) for event in events if name in event]
        if points:
            axes.plot(*zip(*points, strict=True), marker="o" if len(points) < 40 else "", markersize=3, label=label)
    axes.set_xlabel("updates")
    axes.grid(alpha=0.3)
    if axes.lines and len(lines) > 1:
        axes.legend()


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
