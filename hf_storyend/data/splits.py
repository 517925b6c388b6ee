"""Dividing stories into training, validation and test: by the paper's numbers, or by shares."""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from datasets import Dataset, DatasetDict

Part = Literal["whole story", "context", "first three sentences", "ending"]
Row = tuple[str, int]  # split and row, from 0

_NOT_LETTER_OR_DIGIT = re.compile(r"[\W_]+")
_MAX_EXAMPLES = 5


@dataclass(frozen=True)
class Example:
    """Two rows whose texts are the same, and the text of the later one."""

    first: Row
    second: Row
    text: str


@dataclass
class Overlap:
    """What two splits have in common, or one with itself if the two are the same."""

    part: Part
    splits: tuple[str, str]
    num_stories: int = 0  # rows of the second split that are in the first; within one split, all but the first copies
    examples: list[Example] = field(default_factory=list)

    @property
    def is_leak(self) -> bool:
        """Whether stories crossed from one split to another; endings are often the same by chance."""
        return self.splits[0] != self.splits[1] and self.part != "ending"


@dataclass(frozen=True)
class LeakReport:
    """All overlaps of the splits of a dataset, and the number of stories in each split."""

    num_stories: dict[str, int]
    overlaps: list[Overlap]

    @property
    def leaks(self) -> list[Overlap]:
        """The overlaps that make a test result doubtful."""
        return [overlap for overlap in self.overlaps if overlap.is_leak]

    def describe(self) -> str:
        """A few lines for a person: the leaks, then what else is the same."""
        sizes = ", ".join(f"{split} {number:,}" for split, number in self.num_stories.items())
        verdict = "Stories leak between splits." if self.leaks else "No story leaks between splits."
        lines = [f"{verdict} ({sizes} stories)"]
        for overlap in sorted(self.overlaps, key=lambda overlap: (not overlap.is_leak, overlap.part == "ending")):
            lines += _describe(overlap)
        return "\n".join(lines)


def find_leaks(stories: DatasetDict | Mapping[str, Dataset]) -> LeakReport:
    """
    Find stories that are in two splits or twice in one: as a whole, by their context, by the first three sentences of
    a longer context, or by their ending.

    Texts are the same if they are so in lower case and without all that is not a letter or a digit, so that another
    tokenisation hides nothing. Every part is counted by itself: a story that is there twice as a whole counts in all.
    """
    overlaps: dict[tuple[Part, str, str], Overlap] = {}
    seen: dict[tuple[Part, str], dict[str, int]] = {}  # the first row of every split that has the text
    for split, table in stories.items():
        for row, parts in enumerate(_parts(table)):
            for part, text in parts.items():
                first_rows = seen.setdefault((part, text), {})
                for other, first_row in first_rows.items():
                    overlap = overlaps.setdefault((part, other, split), Overlap(part, (other, split)))
                    overlap.num_stories += 1
                    if len(overlap.examples) < _MAX_EXAMPLES:
                        overlap.examples.append(Example((other, first_row), (split, row), _shown(table[row], part)))
                first_rows.setdefault(split, row)
    return LeakReport({split: len(table) for split, table in stories.items()}, list(overlaps.values()))


def _parts(table: Dataset) -> Iterator[dict[Part, str]]:
    """The texts of each story that are compared; one without any letter is like no other."""
    for batch in table.with_format(None).select_columns(["context", "ending"]).iter(batch_size=1_000):
        for context, ending in zip(batch["context"], batch["ending"], strict=True):
            sentences = [_comparable(sentence) for sentence in context]
            ending_text = _comparable(ending)
            parts: dict[Part, str] = {
                "whole story": "".join(sentences) + ending_text,
                "context": "".join(sentences),
                # Of a shorter context they would be all of it.
                "first three sentences": "".join(sentences[:3]) if len(sentences) > 3 else "",
                "ending": ending_text,
            }
            yield {part: text for part, text in parts.items() if text}


def _comparable(text: str) -> str:
    return _NOT_LETTER_OR_DIGIT.sub("", unicodedata.normalize("NFC", text).lower())


def _shown(story: Mapping[str, list[str] | str], part: Part) -> str:
    context, ending = list(story["context"]), str(story["ending"])
    sentences = {
        "whole story": [*context, ending],
        "context": context,
        "first three sentences": context[:3],
        "ending": [ending],
    }[part]
    text = " ".join(sentences)
    return text if len(text) <= 100 else text[:97] + "..."


def _describe(overlap: Overlap) -> list[str]:
    first, second = overlap.splits
    number = f"{overlap.num_stories:,} " + ("story" if overlap.num_stories == 1 else "stories")
    if first == second:
        head = f"- {overlap.part}, within {first}: {number} more than once"
    else:
        head = f"- {overlap.part}, {first} and {second}: {number} of {second} also in {first}"
    rows = [f"    {a.first[0]}[{a.first[1]}] = {a.second[0]}[{a.second[1]}]: {a.text}" for a in overlap.examples]
    return [head, *rows]


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
