"""Systems beside each other: mean scores, and whether one wins more stories than chance would let it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from .libraries import statistics_library

Votes = dict[str, list[int]]  # system -> its final score of each story, in the order of the stories


@dataclass(frozen=True)
class SignTest:
    """
    A sign test over stories. Stories where both systems score the same don't count; `p_value` is None where no other
    is left. `holm` is the p-value corrected for all pairs of systems that were compared.
    """

    system: str
    other: str
    wins: int
    losses: int
    ties: int
    p_value: float | None
    holm: float | None


def mean_and_interval(scores: Sequence[int], seed: int = 0) -> tuple[float, float, float]:
    """The mean score, and where it lies in 95 of 100 samples of stories like these (bootstrap)."""
    mean = sum(scores) / len(scores)
    if len(set(scores)) == 1:
        return mean, mean, mean
    numpy, stats = statistics_library("numpy"), statistics_library("scipy.stats")
    interval = stats.bootstrap((numpy.asarray(scores),), numpy.mean, method="percentile", rng=seed).confidence_interval
    return mean, float(interval.low), float(interval.high)


def sign_tests(votes: Votes) -> list[SignTest]:
    """All pairs of systems, two-sided; of a pair, the one with more wins is named first."""
    tests = [_sign_test(one, two, votes) for one, two in combinations(votes, 2)]
    p_values = [test["p_value"] for test in tests if test["p_value"] is not None]
    corrected = iter(_holm(p_values))
    return [SignTest(**test, holm=None if test["p_value"] is None else next(corrected)) for test in tests]


def _sign_test(one: str, two: str, votes: Votes) -> dict[str, Any]:
    differences = [first - second for first, second in zip(votes[one], votes[two], strict=True)]
    wins, losses = sum(value > 0 for value in differences), sum(value < 0 for value in differences)
    if losses > wins:
        one, two, wins, losses = two, one, losses, wins
    num_decided = wins + losses
    p_value = None
    if num_decided:
        p_value = float(statistics_library("scipy.stats").binomtest(wins, num_decided, 0.5).pvalue)
    ties = len(differences) - num_decided
    return {"system": one, "other": two, "wins": wins, "losses": losses, "ties": ties, "p_value": p_value}


def _holm(p_values: Sequence[float]) -> list[float]:
    if not p_values:
        return []
    multitest = statistics_library("statsmodels.stats.multitest")
    return [float(value) for value in multitest.multipletests(p_values, method="holm")[1]]
