"""Endings of similar stories: wrong for the story, but human, and about the same things."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

import torch
from torch.nn import functional

_NUM_SIMILAR, _CHUNK = 30, 500
# Similar stories are looked for in blocks of so many, by the most frequent words alone: that bounds memory.
_BLOCK, _MAX_WORDS = 8000, 8192
_WORD = re.compile(r"[a-z']+")
_CAPITALISED = re.compile(r"[A-Z]\w+")
# Capitalised at the start of an ending, and no name.
_NO_NAMES = frozenset(
    "A After All And At But Eventually Everyone Finally From He Her His However I In It Luckily My Now On She So That "
    "The Their Then They This Unfortunately We When".split()
)


def endings_of_neighbours(
    contexts: Sequence[Sequence[str]], endings: Sequence[str], number: int
) -> list[tuple[str, ...]]:
    """
    For each story, endings of the most similar ones, by the cosine of their words weighed by inverse document
    frequency. Endings with a name that the story lacks are left out: they would be too easy to tell.

    Args:
        contexts: The stories.
        endings: Their endings.
        number: Most endings for each.
    """
    texts = [" ".join(context) for context in contexts]
    found: list[tuple[str, ...]] = []
    for start in range(0, len(texts), _BLOCK):
        block, block_endings = texts[start : start + _BLOCK], endings[start : start + _BLOCK]
        for place, (text, others) in enumerate(zip(block, _similar(block), strict=True)):
            fitting = [block_endings[other] for other in others if other != place]
            found.append(tuple([ending for ending in fitting if _has_names_of(text, ending)][:number]))
    return found


def _similar(texts: Sequence[str]) -> list[list[int]]:
    """Numbers of the texts that are most similar to each, the most similar first."""
    vectors = _vectors(texts)
    similar: list[list[int]] = []
    for start in range(0, len(texts), _CHUNK):
        cosine = vectors[start : start + _CHUNK] @ vectors.T
        rows = torch.arange(len(cosine))
        cosine[rows, rows + start] = -1.0
        similar += cosine.topk(min(_NUM_SIMILAR, len(texts))).indices.tolist()
    return similar


def _vectors(texts: Sequence[str]) -> torch.Tensor:
    words = [set(_WORD.findall(text.lower())) for text in texts]
    num_stories = Counter(word for row in words for word in row)
    frequent = [word for word, count in num_stories.most_common(_MAX_WORDS) if count > 1]
    columns = {word: column for column, word in enumerate(frequent)}
    vectors = torch.zeros(len(texts), max(len(columns), 1))
    for row, story in enumerate(words):
        for word in story & columns.keys():
            vectors[row, columns[word]] = math.log(len(texts) / num_stories[word])
    return functional.normalize(vectors, dim=1)


def _has_names_of(text: str, ending: str) -> bool:
    return all(name in _NO_NAMES or name in text for name in _CAPITALISED.findall(ending))
