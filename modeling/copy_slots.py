"""Ids for the words of one story that the vocabulary lacks, so that they can be copied and printed again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .words import inner_words


class StorySlots:
    """
    The unknown words of a story, numbered in the order in which they first stand there: the n-th has the id
    `len(vocabulary) + n`. Equal words share a number. Words beyond the last slot stay unknown.

    Args:
        sentences (`Sequence[Sequence[str]]`): All words of the story, spelled as in the vocabulary.
        vocabulary (`Mapping[str, int]`): The words that have ids.
        unknown_id (`int`): Id of a word that has neither.
        num_slots (`int`, *optional*): Most unknown words with ids; no limit by default.
    """

    def __init__(
        self,
        sentences: Sequence[Sequence[str]],
        vocabulary: Mapping[str, int],
        unknown_id: int,
        num_slots: int | None = None,
    ):
        unknown = dict.fromkeys(word for words in sentences for word in words if word not in vocabulary)
        self.words = list(unknown)[:num_slots]
        self._vocabulary, self._unknown_id = vocabulary, unknown_id
        self._slots = {word: len(vocabulary) + number for number, word in enumerate(self.words)}

    def ids(self, words: Iterable[str]) -> list[int]:
        """Ids of words: those of the vocabulary, of the story's slots, or the unknown word's."""
        return [self._vocabulary.get(word, self._slots.get(word, self._unknown_id)) for word in words]


def printed_words(sentences: Sequence[Sequence[str]], words: Sequence[str]) -> list[str]:
    """
    How a story writes each of `words`, given in lower case: as where it first stands inside a sentence or, if it only
    ever starts one, as it stands there.
    """
    inside = [word for sentence in sentences for word in inner_words(sentence)]
    anywhere = [word for sentence in sentences for word in sentence]
    forms: dict[str, str] = {}
    for word in (*inside, *anywhere):
        forms.setdefault(word.lower(), word)
    return [forms.get(word, word) for word in words]
