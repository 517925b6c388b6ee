"""What is wrong with bad endings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from .judgements import Judgement
from .rubric import ERROR_TYPES, METRICS

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
