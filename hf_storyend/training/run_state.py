"""How far a run has come: the numbers that a checkpoint keeps beside tensors."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass
class RunState:
    """
    Args:
        step: Updates made (or skipped) so far.
        epoch, updates_in_epoch: Whole epochs done, and updates of the one under way.
        elapsed: Seconds of training, those before a resume included, those of evaluations not.
        epoch_loss: Sum of the losses of the epoch under way.
        best_metric, best_step: The best evaluation so far, and when it was.
        evaluations_without_progress: Evaluations since then.
        skipped_in_a_row: Updates left out because their loss was not finite.
    """

    step: int = 0
    epoch: int = 0
    updates_in_epoch: int = 0
    elapsed: float = 0.0
    epoch_loss: float = 0.0
    best_metric: float | None = None
    best_step: int | None = None
    evaluations_without_progress: int = 0
    skipped_in_a_row: int = 0

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)
