"""Which of two evaluations is better, by a metric's name."""

from __future__ import annotations

from ..evaluation.result import METRIC_TITLES

_LOWER_IS_BETTER = {"perplexity", "sampled_perplexity", "repetition", "context_copies", "recited"}
_HIGHER_IS_BETTER = {"bleu_1", "bleu_2", "bleu_1_cased", "bleu_2_cased", "rouge_l", "distinct_1", "distinct_2"}


def check_metric(name: str) -> None:
    """Raise unless models can be compared by the metric of that name."""
    if name not in _LOWER_IS_BETTER | _HIGHER_IS_BETTER:
        names = ", ".join(metric for metric in METRIC_TITLES if metric in _LOWER_IS_BETTER | _HIGHER_IS_BETTER)
        raise ValueError(f"`metric_for_best_model` must be one of {names}; got `{name}`.")


def is_better(name: str, value: float, best: float | None) -> bool:
    """Whether a value is better than the best one so far."""
    if best is None:
        return value == value
    return value < best if name in _LOWER_IS_BETTER else value > best
