"""Metrics that are a sum over stories divided by another one: means, shares and perplexities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Ratio:
    """Per-story parts of a metric, from which it can be computed for any choice of the stories."""

    numerators: np.ndarray
    denominators: np.ndarray
    scale: float = 1.0
    is_logarithm: bool = False

    @property
    def value(self) -> float:
        """The metric over all stories."""
        return float(self.over(np.arange(len(self.numerators))))

    def over(self, rows: np.ndarray) -> np.ndarray:
        """The metric over the stories in the last dimension of `rows`; 0 where there is nothing to divide by."""
        above, below = self.numerators[rows].sum(axis=-1), self.denominators[rows].sum(axis=-1)
        quotient = np.divide(above, below, out=np.zeros_like(above), where=below > 0)
        return np.exp(quotient) if self.is_logarithm else self.scale * quotient


def mean_of(values: Sequence[float], scale: float = 1.0) -> Ratio:
    """The mean over stories."""
    return Ratio(np.array(values, dtype=np.float64), np.ones(len(values)), scale)
