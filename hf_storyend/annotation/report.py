"""All that the scores of a sample say, as numbers that JSON can hold."""

from __future__ import annotations

import importlib
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from statistics import median
from typing import Any

from .sampling import Sample
from .sheets import ERROR_TYPES, METRICS, SCORES, Judgement, Judgements


def statistics_library(name: str) -> Any:
    """A module of scipy, statsmodels or matplotlib, loaded when it is used."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"The report of an annotation needs {name.split('.')[0]}. "
            'Install it with `pip install "hf_storyend[evaluation]"`.'
        ) from error


def majority_vote(scores: Sequence[int]) -> int:
    """
    The score most annotators gave. Where two or three scores are equally frequent, the median of all: of 0, 1 and 2
    that is 1. The number of annotators is odd, so the median is a score.
    """
    counts = Counter(scores)
    most = max(counts.values())
    winners = [score for score, count in counts.items() if count == most]
    return winners[0] if len(winners) == 1 else int(median(scores))


def agreement_shares(rows: Sequence[Sequence[int]]) -> dict[int, float]:
    """For every n, most first: the share of endings to which n annotators, and no more, gave the same score."""
    num_annotators = len(rows[0])
    sizes = Counter(max(Counter(row).values()) for row in rows)
    # Three annotators can all differ; of more than three, two must agree.
    least = math.ceil(num_annotators / len(SCORES))
    return {size: sizes[size] / len(rows) for size in range(num_annotators, least - 1, -1)}


def fleiss_kappa(rows: Sequence[Sequence[int]]) -> float | None:
    """Agreement beyond chance; None where it is not defined: one annotator, or the same score everywhere."""
    if len(rows[0]) < 2 or len({score for row in rows for score in row}) < 2:
        return None
    inter_rater = statistics_library("statsmodels.stats.inter_rater")
    table, _ = inter_rater.aggregate_raters(rows, n_cat=len(SCORES))
    return float(inter_rater.fleiss_kappa(table))


_BAD_MEAN = 1


@dataclass(frozen=True)
class ErrorTable:
    """How many endings are bad, and of how many of these each kind of error was named most often."""

    num_bad: int
    num_by_type: dict[str, int]
    num_undecided: int


def is_bad(judgements: Sequence[Judgement]) -> bool:
    """Whether the annotators' mean score is 1 or less in at least one metric."""
    totals = (sum(judgement.scores[metric.name] for judgement in judgements) for metric in METRICS)
    return any(total <= _BAD_MEAN * len(judgements) for total in totals)


def error_type(judgements: Sequence[Judgement]) -> str | None:
    """The kind that most annotators named; None where nobody named one or two are equally frequent."""
    named = Counter(judgement.error_type for judgement in judgements if judgement.error_type is not None)
    most = named.most_common(2)
    if not most or (len(most) == 2 and most[0][1] == most[1][1]):
        return None
    return most[0][0]


def error_table(endings: Sequence[Sequence[Judgement]]) -> ErrorTable:
    """Count the bad ones among a system's endings by kind of error."""
    types = Counter(error_type(judgements) for judgements in endings if is_bad(judgements))
    return ErrorTable(types.total(), {kind.name: types[kind.name] for kind in ERROR_TYPES}, types[None])


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


# From good to bad, grammar first.
JOINT_SCORES = [f"{grammar}-{logicality}" for grammar in reversed(SCORES) for logicality in reversed(SCORES)]


def build_report(sample: Sample, judgements: Judgements) -> dict[str, Any]:
    """Scores, joint scores, agreement, sign tests and kinds of error of every system."""
    votes = {metric.name: _votes(sample, judgements, metric.name) for metric in METRICS}
    return {
        "sample": sample.id,
        "num_stories": len(sample.stories),
        "num_endings": len(sample.items),
        "num_annotators": sample.num_annotators,
        "systems": {system: _system(sample, judgements, votes, system) for system in sample.systems},
        "agreement": {metric.name: _agreement(judgements, metric.name) for metric in METRICS},
        "sign_tests": {name: [asdict(test) for test in sign_tests(by_system)] for name, by_system in votes.items()},
    }


def _votes(sample: Sample, judgements: Judgements, metric: str) -> Votes:
    """The majority's scores by system and story; a sign test pairs them by story."""
    by_system: Votes = {system: [] for system in sample.systems}
    for item in sorted(sample.items, key=lambda item: item.story):
        scores = [judgement.scores[metric] for judgement in judgements[item.id]]
        by_system[item.system].append(majority_vote(scores))
    return by_system


def _system(sample: Sample, judgements: Judgements, votes: dict[str, Votes], system: str) -> dict[str, Any]:
    report: dict[str, Any] = {}
    for name, by_system in votes.items():
        mean, low, high = mean_and_interval(by_system[system])
        report[name] = {"mean": mean, "low": low, "high": high}
    pairs = Counter(f"{grammar}-{logicality}" for grammar, logicality in zip(*_scores_of(votes, system), strict=True))
    report["joint"] = {pair: pairs[pair] / len(sample.stories) for pair in JOINT_SCORES}
    endings = [judgements[item.id] for item in sample.items if item.system == system]
    report["errors"] = asdict(error_table(endings))
    return report


def _scores_of(votes: dict[str, Votes], system: str) -> tuple[list[int], list[int]]:
    return votes["grammar"][system], votes["logicality"][system]


def _agreement(judgements: Judgements, metric: str) -> dict[str, Any]:
    rows = [[judgement.scores[metric] for judgement in each] for each in judgements.values()]
    num_annotators = len(rows[0])
    shares = {f"{size}/{num_annotators}": share for size, share in agreement_shares(rows).items()}
    return {"shares": shares, "fleiss_kappa": fleiss_kappa(rows)}
