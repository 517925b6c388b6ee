"""Statistical significance: bootstrap intervals, and permutation tests and bootstrap tests paired by story."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np
from sacrebleu.significance import PairedTest

from .text_metrics import BLEU_VARIANTS, Ratio, bleu_metric, bleu_of_counts

# Resamples computed at a time: a compromise between speed and memory.
_BATCH = 100
# BLEU-1 and BLEU-2.
_BLEU_ORDER = 2

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
    stats = scipy_stats()
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
    stats = scipy_stats()
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


class PairedBootstrap:
    """
    Paired bootstrap over stories: differences between any two systems on the same resamples of the stories.

    Args:
        references: The references.
        num_resamples: Resamples.
        seed: Seed of the resamples.
    """

    def __init__(self, references: Sequence[str], num_resamples: int, seed: int = 0):
        _check_num_stories(len(references))
        self.references = list(references)
        generator = np.random.default_rng(seed)
        # Rows fit 16 or 32 bits: a thousand resamples of the test stories are 16 MB.
        kind = np.min_scalar_type(len(references))
        self._resamples = [
            generator.integers(len(references), size=len(references)).astype(kind) for _ in range(num_resamples)
        ]

    def ratio(self, ratio: Ratio) -> np.ndarray:
        """Return a ratio over all stories and then over each resample."""
        return np.array([ratio.value, *(float(ratio.over(rows)) for rows in self._resamples)])

    def bleu(self, endings: Sequence[str]) -> dict[str, np.ndarray]:
        """Return BLEU-1 and BLEU-2, lower-cased, over all stories and then over each resample."""
        metric = bleu_metric(_BLEU_ORDER, True)
        pairs = zip(endings, self.references, strict=True)
        scores = [metric.corpus_score([ending], [[reference]]) for ending, reference in pairs]
        counts = np.array([[*one.counts, *one.totals, one.sys_len, one.ref_len] for one in scores])
        sums = [counts.sum(axis=0), *(counts[rows].sum(axis=0) for rows in self._resamples)]
        return {
            f"bleu_{order}": np.array([_bleu_of_sums(own.tolist(), order) for own in sums])
            for order in range(1, _BLEU_ORDER + 1)
        }


def paired_difference(own: np.ndarray, other: np.ndarray) -> dict[str, float]:
    """
    Return the `difference` of a metric between two systems, its 95 % interval and the two-sided `p_value`.

    Args:
        own, other: The metric over all stories and then over each resample, from one `PairedBootstrap`.
    """
    difference, *resampled = (own - other).tolist()
    differences = np.array(resampled)
    low, high = np.quantile(differences, (0.025, 0.975))
    beyond = min((differences <= 0).sum(), (differences >= 0).sum())
    # One is added for the stories as they are: no number of resamples shows a p of zero.
    p_value = min(1.0, 2 * (int(beyond) + 1) / (len(differences) + 1))
    return {"difference": difference, "low": float(low), "high": float(high), "p_value": p_value}


def _bleu_of_sums(sums: list[int], order: int) -> float:
    """Return BLEU of an order from summed counts, totals and lengths."""
    counts, totals, (sys_len, ref_len) = sums[:_BLEU_ORDER], sums[_BLEU_ORDER:-2], sums[-2:]
    return bleu_of_counts(counts[:order], totals[:order], sys_len, ref_len)


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


def scipy_stats() -> ModuleType:
    """Import what intervals and tests need; the error names the extra to install."""
    try:
        from scipy import stats
    except ImportError as error:
        raise ImportError(
            'Intervals and tests need scipy, which is not installed: pip install "hf_storyend[evaluation]"'
        ) from error
    return stats
