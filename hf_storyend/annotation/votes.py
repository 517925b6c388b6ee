"""What several annotators say together: their vote, and how far they agree."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from statistics import median

from .libraries import statistics_library
from .rubric import SCORES


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
