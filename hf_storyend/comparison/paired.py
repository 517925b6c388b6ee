"""Paired bootstrap between all pairs of rows: perplexity and BLEU on the same resamples of the stories."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from ..evaluation.likelihood import Likelihood, perplexity_ratio
from ..evaluation.significance import PairedBootstrap, paired_difference


def compare_pairs(endings: Mapping[str, Path], num_resamples: int) -> list[dict[str, Any]]:
    """
    Compare all pairs of rows.

    Args:
        endings: File of endings of each row, with the losses of the references; all rows have the same stories.
        num_resamples: Bootstrap samples.

    Returns:
        For each pair, `first` and `second`, in the order of the rows, `are_neighbours`, and by metric the `difference`
        second minus first, its 95 % interval `low` to `high` and `p_value`.
    """
    if len(endings) < 2:
        return []
    names, bootstrap, values = list(endings), None, {}
    for name, path in endings.items():
        with path.open(encoding="utf-8") as lines:
            records = [json.loads(line) for line in lines]
        if len(records) < 2:
            return []
        bootstrap = bootstrap or PairedBootstrap([record["reference"] for record in records], num_resamples)
        values[name] = _resampled(bootstrap, records)
    return [
        {
            "first": first,
            "second": second,
            "are_neighbours": names.index(second) - names.index(first) == 1,
            **{metric: paired_difference(values[second][metric], own) for metric, own in values[first].items()},
        }
        for first, second in combinations(names, 2)
    ]


def _resampled(bootstrap: PairedBootstrap, records: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    if [record["reference"] for record in records] != bootstrap.references:
        raise ValueError("The rows were evaluated on different stories: they can't be paired.")
    likelihoods = [Likelihood(record["loss"], record["num_words"], []) for record in records]
    return {
        "perplexity": bootstrap.ratio(perplexity_ratio(likelihoods)),
        **bootstrap.bleu([record["ending"] for record in records]),
    }
