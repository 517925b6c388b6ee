"""How much of a comparison is done, and about how long the rest takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..systems import System

# Time of a story in training, one layer of 192, in units of Seq2Seq's (docs/results.md).
_ENCODERS = {"sequence": 1.0, "hierarchical": 1.0, "incremental": 1.9}
_KNOWLEDGE = {None: 0.0, "graph_attention": 0.15, "contextual_attention": 0.5}
_COPY = 0.3


def relative_cost(system: System) -> float:
    """Return about how long a system trains, in units of Seq2Seq's time, until it has been measured."""
    return _ENCODERS[system.story_encoder] + _KNOWLEDGE[system.knowledge] + _COPY * (system.copy + system.tail_pointer)


@dataclass(frozen=True)
class RowProgress:
    """
    A row that is finished, begun or waiting.

    Args:
        cost: Its relative cost.
        fraction: Fraction of its training that is done.
        seconds: Seconds that this fraction took.
        evaluation_seconds: Seconds of its evaluation; None if it is still to be evaluated.
    """

    cost: float
    fraction: float = 0.0
    seconds: float = 0.0
    evaluation_seconds: float | None = None


@dataclass(frozen=True)
class Estimate:
    """
    State of a comparison.

    Args:
        done: Fraction of the training that is done.
        seconds_left: Seconds that one process needs for the rest; None before anything was measured.
    """

    done: float
    seconds_left: float | None

    def __str__(self) -> str:
        left = (
            "time left: not known yet" if self.seconds_left is None else f"about {_duration(self.seconds_left)} left"
        )
        return f"{100 * self.done:.0f} % of the comparison, {left}"


def estimate(rows: Mapping[str, RowProgress], max_minutes: float | None = None) -> Estimate:
    """
    Estimate what is left of a comparison; a row that has not begun takes as long as the others, by relative cost.

    Args:
        rows: The rows by name.
        max_minutes: Time limit of each training run, if there is one.
    """
    done = sum(row.cost * row.fraction for row in rows.values()) / sum(row.cost for row in rows.values())
    measured = [row for row in rows.values() if row.fraction > 0 and row.seconds > 0]
    if not measured and max_minutes is None:
        return Estimate(done, 0.0 if done >= 1 else None)
    unit = sum(row.seconds for row in measured) / max(sum(row.cost * row.fraction for row in measured), 1e-9)
    evaluations = [row.evaluation_seconds for row in rows.values() if row.evaluation_seconds is not None]
    evaluation = sum(evaluations) / len(evaluations) if evaluations else 0.0
    left = sum(_left(row, unit, evaluation, max_minutes) for row in rows.values())
    return Estimate(done, left)


def _left(row: RowProgress, unit: float, evaluation: float, max_minutes: float | None) -> float:
    whole = row.seconds / row.fraction if row.fraction > 0 and row.seconds > 0 else unit * row.cost
    if max_minutes is not None:
        whole = 60 * max_minutes
    return (1 - row.fraction) * whole + (evaluation if row.evaluation_seconds is None else 0.0)


def _duration(seconds: float) -> str:
    minutes = seconds / 60
    return f"{minutes:.0f} minutes" if minutes < 90 else f"{minutes / 60:.1f} hours"
