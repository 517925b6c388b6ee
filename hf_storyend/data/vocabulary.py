"""The vocabulary: the most frequent words of the training stories, and their truecasing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from ..modeling.text_processing import inner_words, normalize_text, split_words

SPECIAL_TOKENS = ("<unk>", "<pad>", "<s>", "</s>")


@dataclass
class Vocabulary:
    """
    A vocabulary.

    Args:
        ids: Word ids, special tokens first and then by descending frequency.
        counts: Frequency of each word; special tokens have none.
        word_forms: Truecasing: the usual form of words that are not usually in lower case.
        coverage: Fraction of the running words that have an id.
    """

    ids: dict[str, int]
    counts: dict[str, int]
    word_forms: dict[str, str]
    coverage: float


def build_vocabulary(
    sentences: Iterable[str], size: int = 10_000, lower_case: bool = True, split_contractions: bool = True
) -> Vocabulary:
    """
    Build a vocabulary of the most frequent words; ties are broken alphabetically.

    Args:
        sentences: Text of the training stories.
        size: Vocabulary size, special tokens included.
        lower_case: Whether to lower-case words.
        split_contractions: Whether `didn't` is two words.
    """
    if size <= len(SPECIAL_TOKENS):
        raise ValueError(f"`size` must be above {len(SPECIAL_TOKENS)}, the number of special tokens; got {size}.")
    counts: Counter[str] = Counter()
    forms: dict[str, Counter[str]] = {}
    for sentence in sentences:
        words = split_words(normalize_text(sentence), split_contractions)
        counts.update(word.lower() if lower_case else word for word in words)
        for word in inner_words(words):
            forms.setdefault(word.lower(), Counter())[word] += 1
    ranked = sorted(counts, key=lambda word: (-counts[word], word))[: size - len(SPECIAL_TOKENS)]
    if not ranked:
        raise ValueError("There is no word in the sentences: nothing to build a vocabulary of.")
    covered = sum(counts[word] for word in ranked)
    ids = {word: index for index, word in enumerate((*SPECIAL_TOKENS, *ranked))}
    return Vocabulary(
        ids=ids,
        counts={word: counts[word] for word in ranked},
        word_forms=_usual_forms(forms, ids) if lower_case else {},
        coverage=covered / counts.total(),
    )


def _usual_forms(forms: dict[str, Counter[str]], ids: dict[str, int]) -> dict[str, str]:
    usual = {word: min(seen, key=lambda form: (-seen[form], form)) for word, seen in forms.items() if word in ids}
    return {word: form for word, form in sorted(usual.items()) if form != word}
