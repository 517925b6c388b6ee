"""The content lemmas of a vocabulary: every word has one or none, and a lemma has its forms."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from functools import lru_cache

import numpy as np

from .lexicon import content_lemma, is_in_dictionary, is_own_lemma

# `ground` is no form of `grind` if that is this many times as far down the vocabulary.
_MAX_RANK_RATIO = 10


class VocabularyLemmas:
    """
    Content lemmas of a vocabulary, in lower case, numbered by descending frequency of their words.

    Args:
        vocabulary: Word ids by descending frequency. Special tokens, in `<...>`, are skipped.
        names: Lower-case words that have no lemma because they are names.

    Attributes:
        names: The lemmas. `add` appends lemmas that no word of the vocabulary has.
        ids: Position of each lemma in `names`.
        of_word: Lemma of each word id, -1 for words that have none, [V].
        words: Words of the vocabulary that are forms of each lemma, the most frequent first.
        num_in_vocabulary: Number of lemmas with a word.
        num_words: Size of the vocabulary without special tokens.
    """

    def __init__(self, vocabulary: Mapping[str, int], names: Collection[str] = ()):
        self._vocabulary, self._names = vocabulary, frozenset(names)
        self._num_ids = 1 + max(vocabulary.values(), default=0)
        self.lemma = lru_cache(maxsize=1 << 18)(self._lemma)
        self.names: list[str] = []
        self.ids: dict[str, int] = {}
        self.words: list[list[str]] = []
        self.of_word = np.full(self._num_ids, -1, dtype=np.int64)
        for word in sorted(vocabulary, key=vocabulary.__getitem__):
            lemma = None if _is_special(word) else self.lemma(word.lower())
            if lemma is not None:
                index = self.add(lemma)
                self.of_word[vocabulary[word]] = index
                self.words[index].append(word)
        self.num_in_vocabulary = len(self.names)
        self.num_words = sum(not _is_special(word) for word in vocabulary)

    def add(self, lemma: str) -> int:
        """Return the number of a lemma, which is given one if it is new."""
        index = self.ids.setdefault(lemma, len(self.names))
        if index == len(self.names):
            self.names.append(lemma)
            self.words.append([])
        return index

    def is_tail(self, index: int) -> bool:
        """Return whether a lemma has a word of the vocabulary."""
        return index < self.num_in_vocabulary

    def word_of(self, index: int) -> str:
        """Return the word that stands for a lemma: itself if it is one of its forms, else its most frequent form."""
        name, words = self.names[index], self.words[index]
        return name if name in words or not words else words[0]

    def _lemma(self, word: str) -> str | None:
        """Return the content lemma of a lower-case word, or the word itself if it is much more used than its verb."""
        lemma = content_lemma(word) if word not in self._names else None
        if lemma is None or lemma == word or not is_own_lemma(word):
            return lemma
        if word not in self._vocabulary:
            return lemma
        is_rare = self._vocabulary.get(lemma, math.inf) > _MAX_RANK_RATIO * self._vocabulary[word]
        return word if is_rare else lemma

    def is_possible_head(self, lemma: str) -> bool:
        """Return whether a lemma is of the vocabulary or the dictionary: names that no story has are left out."""
        return lemma in self.ids or is_in_dictionary(lemma)


def _is_special(word: str) -> bool:
    return word.startswith("<") and word.endswith(">") and len(word) > 2
