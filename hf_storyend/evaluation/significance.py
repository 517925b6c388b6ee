"""Statistical significance: bootstrap confidence intervals, and paired permutation tests between two systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np
from sacrebleu.significance import PairedTest

from .text_metrics import BLEU_VARIANTS, Ratio, bleu_metric

# Resamples computed at a time: a compromise between speed and memory.
_BATCH = 100

Intervals = dict[str, tuple[float, float]]


def bleu_intervals(endings: Sequence[str], references: Sequence[str], num_resamples: int) -> Intervals:
    """Return 95 % confidence intervals of the BLEU scores by sacrebleu's bootstrap."""
    _check_num_stories(len(endings))
    intervals = {}
    for name in BLEU_VARIANTS:
        # Without a second system, the test gives the interval alone.
        own = _bleu_test(name, [("system", endings)], references, "bs", num_resamples)[0]
        intervals[name] = (float(own.mean - own.ci), float(own.mean + own.ci))
    return intervals


def ratio_intervals(ratios: Mapping[str, Ratio], num_resamples: int, seed: int = 0) -> Intervals:
    """Return 95 % confidence intervals of ratios by bootstrap over stories."""
    stats = _scipy_stats()
    intervals = {}
    for name, ratio in ratios.items():
        rows = np.arange(len(ratio.numerators))
        _check_num_stories(len(rows))
        bounds = stats.bootstrap(
            (rows,),
            lambda chosen, axis=-1, ratio=ratio: ratio.over(chosen),
            n_resamples=num_resamples,
            batch=_BATCH,
            vectorized=True,
            method="percentile",
            rng=np.random.default_rng(seed),
        ).confidence_interval
        intervals[name] = (float(bounds.low), float(bounds.high))
    return intervals


def compare_bleu(
    endings: Sequence[str], baseline: Sequence[str], references: Sequence[str], num_resamples: int
) -> dict[str, dict[str, float]]:
    """Return for each BLEU score the `baseline`'s and the `p_value` of sacrebleu's approximate randomisation test."""
    results = {}
    for name in BLEU_VARIANTS:
        systems = [("baseline", baseline), ("system", endings)]
        other, own = _bleu_test(name, systems, references, "ar", num_resamples)
        # sacrebleu counts strictly larger differences: a difference of zero would look significant.
        p_value = 1.0 if own.score == other.score else own.p_value
        results[name] = {"baseline": float(other.score), "p_value": float(p_value)}
    return results


def compare_ratios(
    ratios: Mapping[str, Ratio], baseline: Mapping[str, Ratio], num_resamples: int, seed: int = 0
) -> dict[str, dict[str, float]]:
    """Return for each ratio of both systems, the `baseline`'s and the `p_value` of a paired permutation test."""
    stats = _scipy_stats()
    results = {}
    for name, own in ratios.items():
        if name not in baseline:
            continue
        other = baseline[name]
        both = _concatenate(own, other)
        num_stories = len(own.numerators)
        test = stats.permutation_test(
            (np.arange(num_stories), np.arange(num_stories, 2 * num_stories)),
            lambda first, second, axis=-1, both=both: both.over(first) - both.over(second),
            permutation_type="samples",
            n_resamples=num_resamples,
            batch=_BATCH,
            vectorized=True,
            rng=np.random.default_rng(seed),
        )
        results[name] = {"baseline": other.value, "p_value": float(test.pvalue)}
    return results


def _concatenate(own: Ratio, other: Ratio) -> Ratio:
    if len(own.numerators) != len(other.numerators):
        raise ValueError(
            f"The systems have {len(own.numerators)} and {len(other.numerators)} endings: they can't be paired."
        )
    return Ratio(
        np.concatenate((own.numerators, other.numerators)),
        np.concatenate((own.denominators, other.denominators)),
        own.scale,
        own.is_logarithm,
    )


def _bleu_test(
    name: str, systems: list[tuple[str, Sequence[str]]], references: Sequence[str], test_type: str, num_resamples: int
) -> list[Any]:
    test = PairedTest(
        systems,
        {"BLEU": bleu_metric(*BLEU_VARIANTS[name])},
        [list(references)],
        test_type=test_type,
        n_samples=num_resamples,
    )
    return test()[1]["BLEU"]


def _check_num_stories(num_stories: int) -> None:
    if num_stories < 2:
        raise ValueError("Confidence intervals need two stories or more; there is one.")


def _scipy_stats() -> ModuleType:
    try:
        from scipy import stats
    except ImportError as error:
        raise ImportError(
            'Intervals and tests need scipy, which is not installed: pip install "hf_storyend[evaluation]"'
        ) from error
    return stats
