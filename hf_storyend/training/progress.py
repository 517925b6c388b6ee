"""Progress of a run: the log file, the progress bar and running means."""

from __future__ import annotations

import json
import logging
import math
import sys
from pathlib import Path
from typing import Any

import torch
from tqdm.auto import tqdm

from ..files import atomic_write
from .checkpoints import RunState

logger = logging.getLogger(__name__)


class TrainingLog:
    """
    The log file of a run, `train_log.jsonl`: one JSON object per event.

    Every event has its `step`; training events have `loss`, evaluations have `eval_...`.

    Args:
        directory: Output directory of the run.
        writes: Whether this process writes the file.
    """

    def __init__(self, directory: Path, writes: bool):
        self.path = directory / "train_log.jsonl"
        self.writes = writes
        self.events: list[dict[str, Any]] = []

    def append(self, event: dict[str, Any]) -> None:
        """Add an event and write it to the file."""
        self.events.append(event)
        if self.writes:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(_to_line(event))

    def truncate(self, step: int) -> None:
        """Read the file and drop the events after `step`: a run that resumes there repeats them."""
        if not self.path.is_file():
            return
        self.events = [event for event in _read_events(self.path) if event["step"] <= step]
        if self.writes:
            atomic_write(self.path, "".join(map(_to_line, self.events)))


class Progress:
    """
    Progress for people: a bar on a terminal, otherwise log messages; silent in all but the main process.

    Args:
        total_steps: Updates of the whole run; None where a time limit decides.
        state: State of the run at its start or resumption.
        done: Fraction of the run that is done then.
        is_main: Whether this is the main process.
    """

    def __init__(self, total_steps: int | None, state: RunState, done: float, is_main: bool):
        self.total_steps, self.is_main = total_steps, is_main
        self.first_done, self.first_elapsed = done, state.elapsed
        self.num_stories, self.sums = 0, torch.zeros(4, dtype=torch.float64)
        self.since = self.elapsed = state.elapsed
        self.bar = tqdm(
            total=total_steps,
            initial=state.step,
            unit="update",
            desc="training",
            disable=not (is_main and sys.stderr.isatty()),
        )

    def add(
        self, num_stories: int, elapsed: float, loss: float, ending_loss: float, gradient_norm: float | None
    ) -> None:
        """Count an update; a skipped one has no gradient norm and does not enter the means."""
        self.num_stories += num_stories
        self.elapsed = elapsed
        if gradient_norm is not None:
            self.sums += torch.tensor((1.0, loss, ending_loss, gradient_norm), dtype=torch.float64)
        self.bar.set_postfix_str(f"{_losses(loss, ending_loss)}, {self.rate:.1f} stories/s", refresh=False)
        self.bar.update()

    @property
    def rate(self) -> float:
        """Stories per second since the means were last taken, without evaluations and checkpoints."""
        return self.num_stories / max(self.elapsed - self.since, 1e-9)

    def take_means(self) -> dict[str, float]:
        """Return the means since they were last taken."""
        count, *sums = self.sums.tolist()
        numbers = {"stories_per_second": round(self.rate, 2)}
        if count:
            loss, ending_loss, gradient_norm = (total / count for total in sums)
            numbers |= {"loss": loss, "ending_loss": ending_loss, "perplexity": perplexity(ending_loss)}
            numbers["gradient_norm"] = gradient_norm
        self.num_stories, self.sums = 0, torch.zeros_like(self.sums)
        self.since = self.elapsed
        return numbers

    def report(self, step: int, done: float, numbers: dict[str, float]) -> None:
        """Log what the bar would show, if there is none."""
        if not self.bar.disable or "loss" not in numbers:
            return
        seconds_per_run = (self.elapsed - self.first_elapsed) / max(done - self.first_done, 1e-9)
        remaining = tqdm.format_interval((1 - done) * seconds_per_run)
        place = f"step {step}" if self.total_steps is None else f"step {step}/{self.total_steps}"
        self.info(
            f"{place}: {_losses(numbers['loss'], numbers['ending_loss'])}, "
            f"{numbers['stories_per_second']:.1f} stories/s, {remaining} left"
        )

    def info(self, message: str) -> None:
        """Log a message, in the main process only."""
        if self.is_main:
            # Above the bar, if there is one.
            with self.bar.external_write_mode():
                logger.info(message)

    def close(self) -> None:
        self.bar.close()


def perplexity(loss: float) -> float:
    """Return exp(loss), or infinity where that overflows."""
    return math.exp(loss) if loss < 700 else math.inf


def _losses(loss: float, ending_loss: float) -> str:
    """Return the ending's loss with its perplexity, and the loss that is minimised, which has the encoder's, too."""
    return f"ending loss {ending_loss:.3f} (perplexity {perplexity(ending_loss):.1f}), total loss {loss:.3f}"


def peak_memory_mb(device: torch.device) -> int | None:
    """Return the peak memory of the GPU, or of this process; None where the system does not report it."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) // 2**20
    try:
        import resource
    except ImportError:
        # Windows has no such module.
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak // (2**20 if sys.platform == "darwin" else 2**10)


def _to_line(event: dict[str, Any]) -> str:
    return json.dumps(event, ensure_ascii=False) + "\n"


def _read_events(path: Path) -> list[dict[str, Any]]:
    """Read a log file; a line cut short by a kill is dropped."""
    events = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict) and isinstance(event.get("step"), int):
            events.append(event)
    return events
