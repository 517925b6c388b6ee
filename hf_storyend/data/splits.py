"""Training, validation and test splits: divide stories reproducibly, and find leakage between splits."""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from datasets import Dataset, DatasetDict

from .text_files import shorten

SPLIT_NAMES = ("train", "validation", "test")


def split_stories(
    stories: Dataset | DatasetDict,
    *,
    num_train: int = 90_000,
    fractions: Sequence[float] | None = None,
    seed: int = 0,
) -> DatasetDict:
    """
    Split stories at random as the paper does: `num_train` for training, half of the rest each for validation and test.

    Stories are ordered by a hash of the seed and their text. The split is thus the same on every machine, with every
    version of every library, and for every order of the file. Rows keep their order. An odd story goes to test.

    Args:
        stories: One split; a `DatasetDict` with several splits is returned unchanged.
        num_train: Number of training stories.
        fractions: Fractions of train, validation and test, such as `(0.8, 0.1, 0.1)`, instead of `num_train`.
        seed: Random seed.
    """
    if isinstance(stories, DatasetDict):
        if len(stories) > 1:
            return stories
        (stories,) = stories.values()
    if fractions is None:
        sizes = _sizes_by_number(len(stories), num_train)
    else:
        sizes = _sizes_by_fraction(len(stories), fractions)
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


def _sizes_by_fraction(num_stories: int, fractions: Sequence[float]) -> tuple[int, int, int]:
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


Part = Literal["whole story", "context", "first three sentences", "ending"]
# Split and row, from 0.
Row = tuple[str, int]

_NOT_LETTER_OR_DIGIT = re.compile(r"[\W_]+")
_MAX_EXAMPLES = 5


@dataclass(frozen=True)
class Example:
    """Two rows with equal texts, and the text of the second one."""

    first: Row
    second: Row
    text: str


@dataclass
class Overlap:
    """
    Overlap of two splits, or duplicates within one if both are the same.

    Args:
        part: Part of the stories that is equal.
        splits: The two splits.
        num_stories: Rows of the second split that are in the first; within one split, duplicates of an earlier row.
        examples: The first of them.
    """

    part: Part
    splits: tuple[str, str]
    num_stories: int = 0
    examples: list[Example] = field(default_factory=list)

    @property
    def is_leak(self) -> bool:
        """True if contexts are in two splits. Endings do not count: they are often equal by chance."""
        return self.splits[0] != self.splits[1] and self.part != "ending"


@dataclass(frozen=True)
class LeakReport:
    """All overlaps of the splits of a dataset, and the number of stories in each split."""

    num_stories: dict[str, int]
    overlaps: list[Overlap]

    @property
    def leaks(self) -> list[Overlap]:
        """The overlaps that bias test results."""
        return [overlap for overlap in self.overlaps if overlap.is_leak]

    def describe(self) -> str:
        """Return a few lines of text: leaks first, then other overlaps."""
        sizes = ", ".join(f"{split} {number:,}" for split, number in self.num_stories.items())
        verdict = "Stories leak between splits." if self.leaks else "No story leaks between splits."
        lines = [f"{verdict} ({sizes} stories)"]
        for overlap in sorted(self.overlaps, key=lambda overlap: (not overlap.is_leak, overlap.part == "ending")):
            lines += _describe(overlap)
        return "\n".join(lines)


def find_leaks(stories: DatasetDict | Mapping[str, Dataset]) -> LeakReport:
    """
    Find stories that are in two splits or twice in one: whole stories, contexts, the first three sentences of longer
    contexts, and endings.

    Texts are compared in lower case, letters and digits only, so that tokenisation hides nothing. Every part is
    counted on its own: a duplicate of a whole story counts in all four.
    """
    overlaps: dict[tuple[Part, str, str], Overlap] = {}
    seen: dict[tuple[Part, str], dict[str, int]] = {}  # first row in each split
    for split, table in stories.items():
        for row, parts in enumerate(_parts(table)):
            for part, text in parts.items():
                first_rows = seen.setdefault((part, text), {})
                for other, first_row in first_rows.items():
                    overlap = overlaps.setdefault((part, other, split), Overlap(part, (other, split)))
                    overlap.num_stories += 1
                    if len(overlap.examples) < _MAX_EXAMPLES:
                        text = _text_of_part(table[row], part)
                        overlap.examples.append(Example((other, first_row), (split, row), text))
                first_rows.setdefault(split, row)
    return LeakReport({split: len(table) for split, table in stories.items()}, list(overlaps.values()))


def _parts(table: Dataset) -> Iterator[dict[Part, str]]:
    """Iterate over the normalised parts of each story; parts without a letter or digit are left out."""
    for batch in table.with_format(None).select_columns(["context", "ending"]).iter(batch_size=1_000):
        for context, ending in zip(batch["context"], batch["ending"], strict=True):
            sentences = [_normalise(sentence) for sentence in context]
            ending_text = _normalise(ending)
            parts: dict[Part, str] = {
                "whole story": "".join(sentences) + ending_text,
                "context": "".join(sentences),
                # In shorter contexts they are the whole context.
                "first three sentences": "".join(sentences[:3]) if len(sentences) > 3 else "",
                "ending": ending_text,
            }
            yield {part: text for part, text in parts.items() if text}


def _normalise(text: str) -> str:
    return _NOT_LETTER_OR_DIGIT.sub("", unicodedata.normalize("NFC", text).lower())


def _text_of_part(story: Mapping[str, list[str] | str], part: Part) -> str:
    context, ending = list(story["context"]), str(story["ending"])
    sentences = {
        "whole story": [*context, ending],
        "context": context,
        "first three sentences": context[:3],
        "ending": [ending],
    }[part]
    return shorten(" ".join(sentences), 100)


def _describe(overlap: Overlap) -> list[str]:
    first, second = overlap.splits
    number = f"{overlap.num_stories:,} " + ("story" if overlap.num_stories == 1 else "stories")
    if first == second:
        head = f"- {overlap.part}, within {first}: {number} more than once"
    else:
        head = f"- {overlap.part}, {first} and {second}: {number} of {second} also in {first}"
    rows = [f"    {a.first[0]}[{a.first[1]}] = {a.second[0]}[{a.second[1]}]: {a.text}" for a in overlap.examples]
    return [head, *rows]
