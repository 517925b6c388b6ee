# Copyright 2026 The hf_storyend authors.
# SPDX-License-Identifier: Apache-2.0
"""
Ids of words out of the vocabulary, from which the words can be read again.

A model that copies has S slots, the columns V, V + 1, ... of its logits, for the words that a story has and the
vocabulary of V words lacks. `V + slot` says which word of the story is meant, but not which word that is. The ids that
the tokenizer gives are therefore

    V + slot + S * code

where the code spells the word, so that every tokenizer of the same vocabulary can decode it, in any process and at any
time; the model needs the rest of the division by S only. With 32 slots, English words of one case have room for 11
letters; others (`McDuff`, `José`, `3rd`) for 9, where an accent counts as one. Words that are longer, or of other
letters, get a hash as their code. The tokenizer instance that made it remembers the word; any other prints it as
unknown. Code 0 stands for a word without a name: the slot alone.
"""

from __future__ import annotations

import hashlib
import threading
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

import torch

# Smaller codes are never given, so that an id without a name that some larger model gave is not taken for a word.
_FIRST_CODE = 1 << 16
_LETTERS = "abcdefghijklmnopqrstuvwxyz'-"
_BASE = len(_LETTERS) + 1
_DIGITS = {letter: digit for digit, letter in enumerate(_LETTERS, start=1)}
_CASES = (str.lower, str.capitalize, str.upper)
# Of words as they are written, decomposed: the marks are grave, acute, circumflex, tilde, diaeresis, cedilla.
_ALPHABET = _LETTERS[:26]
_CHARACTERS = _ALPHABET + _ALPHABET.upper() + "0123456789'-.$:," + "\u0300\u0301\u0302\u0303\u0308\u0327"
_CHARACTER_BASE = len(_CHARACTERS) + 1
_CHARACTER_DIGITS = {character: digit for digit, character in enumerate(_CHARACTERS, start=1)}
# Codes of each kind have this many bits together with the slot. The kinds follow one another: letters of one case,
# hashes, characters.
_NUM_BITS = 61
# As many slots as a configuration allows: more would leave too few bits for words.
MAX_SLOTS = 65_536
# Hashed words that a tokenizer remembers: some megabytes.
_MAX_REMEMBERED = 1 << 15


def to_slots(ids: torch.Tensor, vocab_size: int, num_slots: int) -> torch.Tensor:
    """Columns of the logits, from ids of words and of words out of the vocabulary; what is below stays as it is."""
    return ids.where(ids < vocab_size, vocab_size + (ids - vocab_size) % num_slots)


def to_named_ids(slots: torch.Tensor, copy_ids: torch.Tensor, vocab_size: int, num_slots: int) -> torch.Tensor:
    """
    Ids with names [rows, T] from columns of the logits [rows, T], by the ids of each story's words [B, ...]. There may
    be several rows a story.
    """
    copy_ids = copy_ids.flatten(1).to(slots.device)
    table = torch.arange(vocab_size, vocab_size + num_slots + 1, device=slots.device).repeat(len(copy_ids), 1)
    # One column more takes the words of the vocabulary.
    columns = (copy_ids - vocab_size) % num_slots
    table = table.scatter(1, columns.where(copy_ids >= vocab_size, num_slots), copy_ids)
    table = table.repeat_interleave(len(slots) // len(copy_ids), dim=0)
    is_slot = slots >= vocab_size
    return table.gather(1, (slots - vocab_size).masked_fill(~is_slot, num_slots)).where(is_slot, slots)


def are_foreign(ids: torch.Tensor, vocab_size: int, num_slots: int) -> torch.Tensor:
    """True at ids of words out of the vocabulary that a model with so many slots can't copy."""
    return (ids >= vocab_size + num_slots) & (ids < vocab_size + num_slots * _FIRST_CODE)


class OOVNames:
    """Codes of words and words of codes. Safe to use in threads; copies and pickles remember nothing."""

    def __init__(self) -> None:
        self._words: dict[int, str] = {}
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple:
        # What was read so far must change neither fingerprints of data sets nor saved tokenizers.
        return OOVNames, ()

    def ids(self, words: Iterable[str], vocab_size: int, num_slots: int) -> list[int]:
        """Ids of the words in slots 0, 1, ..., spelled as they are to be printed."""
        return [vocab_size + slot + num_slots * self._code(word, num_slots) for slot, word in enumerate(words)]

    def word(self, word_id: int, vocab_size: int, num_slots: int) -> str | None:
        """The word of an id; None if it has no name, or one that another tokenizer remembers."""
        if not num_slots:
            return None
        limit = _num_codes(num_slots)
        code = (word_id - vocab_size) // num_slots - _FIRST_CODE
        if code >= 2 * limit:
            return _written(code - 2 * limit)
        if code >= limit:
            with self._lock:
                return self._words.get(code - limit)
        return _spelled(code) if code >= 0 else None

    def _code(self, word: str, num_slots: int) -> int:
        limit = _num_codes(num_slots)
        code = _spelling(word)
        if code is not None and code < limit:
            return _FIRST_CODE + code
        code = _characters(word)
        if code is not None and code < limit:
            return _FIRST_CODE + 2 * limit + code
        digest = int.from_bytes(hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
        with self._lock:
            known = self._words.setdefault(digest % limit, word)
            while len(self._words) > _MAX_REMEMBERED:
                self._words.pop(next(iter(self._words)))
        return _FIRST_CODE + limit + digest % limit if known == word else 0


def _num_codes(num_slots: int) -> int:
    """How many codes there are of each kind."""
    return (1 << _NUM_BITS) // num_slots - _FIRST_CODE


def _spelling(word: str) -> int | None:
    """The letters as digits of a number, the last letter first, and the case; None if it can't be spelled so."""
    case = next((number for number, change in enumerate(_CASES) if change(word) == word), None)
    letters = word.lower()
    if case is None or not _DIGITS.keys() >= set(letters):
        return None
    return _to_number([_DIGITS[letter] for letter in letters], _BASE) * len(_CASES) + case


def _spelled(code: int) -> str:
    number, case = divmod(code, len(_CASES))
    return _CASES[case]("".join(_LETTERS[digit - 1] for digit in _to_digits(number, _BASE)))


def _characters(word: str) -> int | None:
    """The characters as digits of a number; None if there are others, or the word can't be composed again."""
    parts = unicodedata.normalize("NFD", word)
    if unicodedata.normalize("NFC", parts) != word or not _CHARACTER_DIGITS.keys() >= set(parts):
        return None
    return _to_number([_CHARACTER_DIGITS[character] for character in parts], _CHARACTER_BASE)


def _written(code: int) -> str:
    characters = (_CHARACTERS[digit - 1] for digit in _to_digits(code, _CHARACTER_BASE))
    return unicodedata.normalize("NFC", "".join(characters))


def _to_number(digits: Sequence[int], base: int) -> int:
    """A number of these digits, none of them 0, the last one first."""
    number = 0
    for digit in reversed(digits):
        number = number * base + digit
    return number


def _to_digits(number: int, base: int) -> Iterator[int]:
    while number:
        number, digit = divmod(number, base)
        yield digit
