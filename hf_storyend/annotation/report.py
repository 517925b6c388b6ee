"""All that the scores of a sample say, as numbers that JSON can hold."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

from .comparison import Votes, mean_and_interval, sign_tests
from .errors import error_table
from .judgements import Judgements
from .rubric import METRICS, SCORES
from .sampling import Sample
from .votes import agreement_shares, fleiss_kappa, majority_vote

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
