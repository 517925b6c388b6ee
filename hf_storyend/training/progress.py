"""What a person sees while a run trains, and the means that the log gets."""

from __future__ import annotations

import math
import resource
import sys

import torch
from tqdm.auto import tqdm

from .run_state import RunState


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
