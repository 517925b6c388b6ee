"""Statistics of human scores: majority votes, bootstrap intervals, agreement, sign tests and types of error."""

from __future__ import annotations

import importlib
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import Any

from .judgements import Judgement
from .rubric import ERROR_TYPES, METRICS, SCORES

# System: its final score of each story, in the order of the stories.
Votes = dict[str, list[int]]

# Highest mean score of a bad ending.
_BAD_MEAN = 1


def import_extra(name: str) -> Any:
    """Import a module of scipy, statsmodels or matplotlib, which only the report needs."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"The report of an annotation needs {name.split('.')[0]}. "
            'Install it with `pip install "hf_storyend[evaluation]"`.'
        ) from error


def majority_vote(scores: Sequence[int]) -> int:
    """
    Return the score that most annotators gave or, if several are equally frequent, the median of all.

    The median of 0, 1 and 2 is 1. The number of annotators is odd, so that the median is a score.
    """
    counts = Counter(scores)
    highest = max(counts.values())
    winners = [score for score, count in counts.items() if count == highest]
    return winners[0] if len(winners) == 1 else int(median(scores))


def mean_and_interval(scores: Sequence[int], seed: int = 0) -> tuple[float, float, float]:
    """Return the mean score and its 95 % confidence interval by bootstrap over stories: mean, low, high."""
    mean = sum(scores) / len(scores)
    if len(set(scores)) == 1:
        return mean, mean, mean
    numpy, stats = import_extra("numpy"), import_extra("scipy.stats")
    interval = stats.bootstrap((numpy.asarray(scores),), numpy.mean, method="percentile", rng=seed).confidence_interval
    return mean, float(interval.low), float(interval.high)


def agreement_shares(rows: Sequence[Sequence[int]]) -> dict[int, float]:
    """Return, for every n in falling order, the share of endings to which exactly n annotators gave the same score."""
    num_annotators = len(rows[0])
    sizes = Counter(max(Counter(row).values()) for row in rows)
    # Three annotators can all differ; of more than three, two must agree.
    smallest = math.ceil(num_annotators / len(SCORES))
    return {size: sizes[size] / len(rows) for size in range(num_annotators, smallest - 1, -1)}


def fleiss_kappa(rows: Sequence[Sequence[int]]) -> float | None:
    """Return the agreement beyond chance; None if undefined: one annotator, or the same score everywhere."""
    if len(rows[0]) < 2 or len({score for row in rows for score in row}) < 2:
        return None
    inter_rater = import_extra("statsmodels.stats.inter_rater")
    table, _ = inter_rater.aggregate_raters(rows, n_cat=len(SCORES))
    return float(inter_rater.fleiss_kappa(table))


@dataclass(frozen=True)
class SignTest:
    """
    A two-sided sign test over stories.

    Args:
        system: The system with more wins.
        other: The other system.
        wins: Stories with a higher score of `system`.
        losses: Stories with a lower score of `system`.
        ties: Stories with equal scores, which the test ignores.
        p_value: None if all stories are ties.
        holm: The p-value with Holm's correction for all pairs of systems.
    """

    system: str
    other: str
    wins: int
    losses: int
    ties: int
    p_value: float | None
    holm: float | None


def sign_tests(votes: Votes) -> list[SignTest]:
    """Test all pairs of systems."""
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
        p_value = float(import_extra("scipy.stats").binomtest(wins, num_decided, 0.5).pvalue)
    ties = len(differences) - num_decided
    return {"system": one, "other": two, "wins": wins, "losses": losses, "ties": ties, "p_value": p_value}


def _holm(p_values: Sequence[float]) -> list[float]:
    if not p_values:
        return []
    multitest = import_extra("statsmodels.stats.multitest")
    return [float(value) for value in multitest.multipletests(p_values, method="holm")[1]]


@dataclass(frozen=True)
class ErrorTable:
    """Number of bad endings, of those with each type of error, and of those without a decision."""

    num_bad: int
    num_by_type: dict[str, int]
    num_undecided: int


def error_table(endings: Sequence[Sequence[Judgement]]) -> ErrorTable:
    """Count a system's bad endings by type of error."""
    types = Counter(error_type(judgements) for judgements in endings if is_bad(judgements))
    return ErrorTable(types.total(), {kind.name: types[kind.name] for kind in ERROR_TYPES}, types[None])


def is_bad(judgements: Sequence[Judgement]) -> bool:
    """True if the mean score is 1 or less in at least one metric."""
    totals = (sum(judgement.scores[metric.name] for judgement in judgements) for metric in METRICS)
    return any(total <= _BAD_MEAN * len(judgements) for total in totals)


def error_type(judgements: Sequence[Judgement]) -> str | None:
    """Return the type that most annotators named; None if nobody named one or two are equally frequent."""
    named = Counter(judgement.error_type for judgement in judgements if judgement.error_type is not None)
    most = named.most_common(2)
    if not most or (len(most) == 2 and most[0][1] == most[1][1]):
        return None
    return most[0][0]
