"""Systems that understand nothing: a score near theirs means nothing."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from .texts import words_of


def best_constant_ending(endings: Iterable[str]) -> str:
    """
    The ending that, written for every story, has the highest BLEU-1 against all these endings. (The most frequent one
    is short, and the brevity penalty makes it a floor that is too easy to stand on.)
    """
    forms: dict[tuple[str, ...], str] = {}
    lengths: list[int] = []
    counts: Counter[tuple[str, int]] = Counter()
    for ending in endings:
        words = words_of(ending)
        forms.setdefault(tuple(words), ending)
        lengths.append(len(words))
        counts.update(_numbered(words))
    if not any(lengths):
        raise ValueError("There is no ending with a word to choose a constant one of.")
    mean_length = sum(lengths) / len(lengths)
    return forms[max(forms, key=lambda words: _score(words, counts, mean_length))]


def trivial_systems(contexts: Sequence[Sequence[str]], constant_ending: str) -> dict[str, list[str]]:
    """The endings of two trivial systems: always the same one, and the last sentence of the context again."""
    return {
        "constant_ending": [constant_ending] * len(contexts),
        "last_sentence": [context[-1] for context in contexts],
    }


def _numbered(words: Sequence[str]) -> list[tuple[str, int]]:
    """Words with how often they came before: what BLEU clips its counts by."""
    seen: Counter[str] = Counter()
    numbered = []
    for word in words:
        numbered.append((word, seen[word]))
        seen[word] += 1
    return numbered


def _score(words: Sequence[str], counts: Counter[tuple[str, int]], mean_length: float) -> float:
    """BLEU-1 but for a constant factor."""
    if not words:
        return 0.0
    precision = sum(counts[word] for word in _numbered(words)) / len(words)
    return precision * min(1.0, math.exp(1 - mean_length / len(words)))
