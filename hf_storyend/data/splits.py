"""Dividing stories into training, validation and test: by the paper's numbers, or by shares."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

from datasets import Dataset, DatasetDict

SPLIT_NAMES = ("train", "validation", "test")


def split_stories(
    stories: Dataset | DatasetDict,
    *,
    num_train: int = 90_000,
    fractions: Sequence[float] | None = None,
    seed: int = 0,
) -> DatasetDict:
    """
    Split as the paper does: `num_train` stories at random for training, half of the rest each for validation and test
    (an odd one goes to test), as the public files are.

    Chance is a hash of the seed and the story's text. So the same stories are split the same way on every machine,
    by every version of every library, and in whatever order the file has them. Rows keep their order.

    Args:
        stories: One split; a `DatasetDict` that has several already is returned as it is.
        num_train: Number of stories for training.
        fractions: For a smaller corpus, in place of `num_train`: the shares of train, validation and test, which
            together make 1, such as `(0.8, 0.1, 0.1)`.
        seed: Another seed gives another split.
    """
    if isinstance(stories, DatasetDict):
        if len(stories) > 1:
            return stories
        (stories,) = stories.values()
    sizes = _sizes_by_number(len(stories), num_train) if fractions is None else _sizes(len(stories), fractions)
    order = _shuffled_rows(stories, seed)
    splits, start = {}, 0
    for name, size in zip(SPLIT_NAMES, sizes, strict=True):
        splits[name] = stories.select(sorted(order[start : start + size]))
        start += size
    return DatasetDict(splits)


def _sizes_by_number(num_stories: int, num_train: int) -> tuple[int, int, int]:
    if isinstance(num_train, bool) or not isinstance(num_train, int) or num_train < 1:
        raise ValueError(f"`num_train` must be a whole number of at least 1; got {num_train!r}.")
    rest = num_stories - num_train
    if rest < 2:
        raise ValueError(
            f"`num_train` is {num_train:,}, but there are {num_stories:,} stories, and two must be left for "
            "validation and test. Give a smaller number, or `fractions=(0.8, 0.1, 0.1)`."
        )
    return num_train, rest // 2, rest - rest // 2


def _sizes(num_stories: int, fractions: Sequence[float]) -> tuple[int, int, int]:
    is_valid = len(fractions) == 3 and min(fractions) > 0 and math.isclose(sum(fractions), 1, abs_tol=1e-6)
    if not is_valid:
        raise ValueError(f"`fractions` must be three numbers above 0 that make 1 together; got {fractions!r}.")
    num_train, num_validation = (round(num_stories * fraction) for fraction in fractions[:2])
    sizes = num_train, num_validation, num_stories - num_train - num_validation
    if min(sizes) < 1:
        raise ValueError(f"`fractions` {fractions!r} of {num_stories} stories leave a split empty: {sizes}.")
    return sizes


def _shuffled_rows(stories: Dataset, seed: int) -> list[int]:
    keys: list[bytes] = []
    for batch in stories.with_format(None).select_columns(["context", "ending"]).iter(batch_size=1_000):
        for context, ending in zip(batch["context"], batch["ending"], strict=True):
            text = "\n".join([str(seed), *context, ending])
            keys.append(hashlib.sha256(text.encode()).digest())
    return sorted(range(len(keys)), key=keys.__getitem__)
