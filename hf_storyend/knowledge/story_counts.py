"""Counts over stories: which lemma of a context goes with which new lemma of an ending."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

# Stories whose pairs are formed at a time: bounds the memory.
_CHUNK_SIZE = 8192


@dataclass(frozen=True)
class StoryWords:
    """
    Word ids of stories as flat arrays.

    Args:
        num_stories: Number of stories.
        context_stories, context_words: Story and id of every word of the contexts, sorted by story.
        ending_stories, ending_words: The same of the endings.
    """

    num_stories: int
    context_stories: np.ndarray
    context_words: np.ndarray
    ending_stories: np.ndarray
    ending_words: np.ndarray


class StoryCounts:
    """
    Numbers of stories by lemma and by pair of lemmas.

    A lemma is new in an ending if the context lacks it.

    Attributes:
        num_stories: N.
        contexts: n_h, the number of stories whose context has a lemma.
        endings: n_t, the number of stories in whose ending a lemma is new.
    """

    def __init__(self, stories: StoryWords, lemma_of_word: np.ndarray, num_lemmas: int):
        self.num_stories, self._num_lemmas = stories.num_stories, num_lemmas
        self._words = _Sets(stories.context_stories, stories.context_words, len(lemma_of_word))
        self._word_lemmas = lemma_of_word[self._words.members]
        self._heads = _lemma_sets(stories.context_stories, lemma_of_word[stories.context_words], num_lemmas)
        endings = _lemma_sets(stories.ending_stories, lemma_of_word[stories.ending_words], num_lemmas)
        self._tails = endings.without(self._heads)
        self.contexts = np.bincount(self._heads.members, minlength=num_lemmas)
        self.endings = np.bincount(self._tails.members, minlength=num_lemmas)

    def pairs(self, heads: np.ndarray, tails: np.ndarray) -> np.ndarray:
        """Return n, the number of stories with the head in the context and the tail new in the ending."""
        keys, numbers = self._pair_numbers
        wanted = heads * self._num_lemmas + tails
        places = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
        return np.where(keys[places] == wanted, numbers[places], 0) if len(keys) else np.zeros(len(wanted), int)

    def has_context(self, stories: np.ndarray, lemmas: np.ndarray) -> np.ndarray:
        """Return whether the context of each story has the lemma."""
        return self._heads.contains(stories, lemmas)

    def occurrences(self, heads: np.ndarray, tails: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """
        Iterate over occurrences of pairs, in order of stories: story, word of the context, and position of the pair.

        Args:
            heads, tails: Pairs, sorted by head and tail.
        """
        keys = heads * self._num_lemmas + tails
        for start in range(0, self.num_stories, _CHUNK_SIZE):
            rows, others = self._words.products(self._tails, start, start + _CHUNK_SIZE)
            lemmas = self._word_lemmas[rows]
            found = lemmas * self._num_lemmas + self._tails.members[others]
            places = np.minimum(np.searchsorted(keys, found), len(keys) - 1)
            is_pair = (keys[places] == found) & (lemmas >= 0)
            rows, places = rows[is_pair], places[is_pair]
            yield self._words.stories[rows], self._words.members[rows], places

    @cached_property
    def _pair_numbers(self) -> tuple[np.ndarray, np.ndarray]:
        """All pairs that occur, as sorted keys, and in how many stories each does."""
        chunks = []
        for start in range(0, self.num_stories, _CHUNK_SIZE):
            rows, others = self._heads.products(self._tails, start, start + _CHUNK_SIZE)
            chunks.append(self._heads.members[rows] * self._num_lemmas + self._tails.members[others])
        keys = np.concatenate(chunks) if chunks else np.zeros(0, dtype=np.int64)
        return np.unique(keys, return_counts=True)


class _Sets:
    """A set of numbers below `size` for every story, as sorted rows of story and member."""

    def __init__(self, stories: np.ndarray, members: np.ndarray, size: int):
        self._size = size
        self._keys = np.unique(stories.astype(np.int64) * size + members)
        self.stories, self.members = self._keys // size, self._keys % size

    def contains(self, stories: np.ndarray, members: np.ndarray) -> np.ndarray:
        keys = stories * self._size + members
        if not len(self._keys):
            return np.zeros(keys.shape, dtype=bool)
        return self._keys[np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)] == keys

    def without(self, other: _Sets) -> _Sets:
        is_new = ~other.contains(self.stories, self.members)
        return _Sets(self.stories[is_new], self.members[is_new], self._size)

    def products(self, other: _Sets, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Return rows of all pairs of a member here and one of `other`, for the stories from `start` to `stop`."""
        first, last = np.searchsorted(self.stories, (start, stop))
        rows = np.arange(first, last)
        starts = np.searchsorted(other.stories, self.stories[rows], side="left")
        numbers = np.searchsorted(other.stories, self.stories[rows], side="right") - starts
        # Position of each pair among those of its row.
        steps = np.arange(numbers.sum()) - np.repeat(np.cumsum(numbers) - numbers, numbers)
        return np.repeat(rows, numbers), np.repeat(starts, numbers) + steps


def _lemma_sets(stories: np.ndarray, lemmas: np.ndarray, num_lemmas: int) -> _Sets:
    is_lemma = lemmas >= 0
    return _Sets(stories[is_lemma], lemmas[is_lemma], num_lemmas)
