"""The words a model knows: the most frequent ones of the training stories, and the case they are written in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from ..modeling.words import inner_words, normalize_text, split_words

SPECIAL_WORDS = ("<unk>", "<pad>", "<s>", "</s>")


@dataclass
class Vocabulary:
    """Word ids, special symbols first and then by falling frequency; and the usual case of words not in lower case."""

    ids: dict[str, int]
    counts: dict[str, int]  # how often each word stands in the sentences; special symbols are not among them
    word_forms: dict[str, str]
    coverage: float  # share of the running words that have an id


def build_vocabulary(
    sentences: Iterable[str], size: int = 10_000, lower_case: bool = True, split_contractions: bool = True
) -> Vocabulary:
    """The `size` most frequent words (special symbols included), ties in alphabetical order."""
    if size <= len(SPECIAL_WORDS):
        raise ValueError(f"`size` must be above {len(SPECIAL_WORDS)}, the number of special symbols; got {size}.")
    counts: Counter[str] = Counter()
    forms: dict[str, Counter[str]] = {}
    for sentence in sentences:
        words = split_words(normalize_text(sentence), split_contractions)
        counts.update(word.lower() if lower_case else word for word in words)
        for word in inner_words(words):
            forms.setdefault(word.lower(), Counter())[word] += 1
    ranked = sorted(counts, key=lambda word: (-counts[word], word))[: size - len(SPECIAL_WORDS)]
    if not ranked:
        raise ValueError("There is no word in the sentences: nothing to build a vocabulary of.")
    covered = sum(counts[word] for word in ranked)
    ids = {word: index for index, word in enumerate((*SPECIAL_WORDS, *ranked))}
    return Vocabulary(
        ids=ids,
        counts={word: counts[word] for word in ranked},
        word_forms=_usual_forms(forms, ids) if lower_case else {},
        coverage=covered / counts.total(),
    )


def _usual_forms(forms: dict[str, Counter[str]], ids: dict[str, int]) -> dict[str, str]:
    usual = {word: min(seen, key=lambda form: (-seen[form], form)) for word, seen in forms.items() if word in ids}
    return {word: form for word, form in sorted(usual.items()) if form != word}
