"""From text to words and back: what a word is, and how words are put together so that a person would print them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping

_ASCII_FORMS = str.maketrans(
    {"‘": "'", "’": "'", "ʼ": "'", "“": '"', "”": '"', "–": "-", "—": "--", "…": "...", "\u00a0": " "}
)
_INVISIBLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")

_CLITIC = r"'(?:s|re|ve|ll|d|m)\b"
_NUMBER = r"\d+(?:[.,:]\d+)+\w*"
_ACRONYM = r"(?:[^\W\d_]\.){2,}"
_SYMBOL = r"\.{2,}|-{2,}|[^\s\w]"
_SPLIT_CONTRACTIONS = re.compile(
    rf"{_NUMBER}|{_ACRONYM}|[^\W\d_]+(?=n't\b)|n't\b|{_CLITIC}|\w+(?:-\w+|'(?!(?:s|re|ve|ll|d|m)\b)\w+)*|{_SYMBOL}",
    re.IGNORECASE,
)
_KEEP_CONTRACTIONS = re.compile(rf"{_NUMBER}|{_ACRONYM}|n't\b|{_CLITIC}|\w+(?:[-']\w+)*|{_SYMBOL}", re.IGNORECASE)

_IS_CLITIC = re.compile(rf"(?:n't|{_CLITIC})$", re.IGNORECASE)
_NO_SPACE_BEFORE = frozenset([".", ",", "!", "?", ":", ";", ")", "]", "}", "%", "...", "/"])
_NO_SPACE_AFTER = frozenset(["(", "[", "{", "$", "£", "€", "#", "/"])
_QUOTES = frozenset(['"', "'"])
_SENTENCE_MARKS = frozenset([".", "!", "?"])

# Composing sorts the marks on a letter in quadratic time; no script has more of them than Unicode's stream-safe text.
_MAX_MARKS = 30
_MANY_MARKS = re.compile(rf"[^\x00-\u02ff]{{{_MAX_MARKS + 1},}}")


def normalize_text(text: str) -> str:
    """Composed Unicode with plain quotes and dashes, without invisible or control characters."""
    if not text.isascii():
        text = _composed(text).translate(_ASCII_FORMS)
    return _INVISIBLE.sub("", text)


def _composed(text: str) -> str:
    """NFC; a letter with more marks than any script needs is composed in parts."""
    if not _MANY_MARKS.search(text):
        return unicodedata.normalize("NFC", text)
    parts, start, num_marks = [], 0, 0
    for place, character in enumerate(text):
        num_marks = num_marks + 1 if unicodedata.combining(character) else 0
        if num_marks > _MAX_MARKS:
            parts.append(text[start:place])
            start, num_marks = place, 1
    return "".join(unicodedata.normalize("NFC", part) for part in (*parts, text[start:]))


def split_words(text: str, split_contractions: bool = True) -> list[str]:
    """
    Words, numbers and marks of a normalised text. Contractions are two words (`did n't`, `Tom 's`) unless
    `split_contractions` is false, as in the authors' data.
    """
    return (_SPLIT_CONTRACTIONS if split_contractions else _KEEP_CONTRACTIONS).findall(text)


def join_words(words: Iterable[str], forms: Mapping[str, str] | None = None) -> str:
    """
    A sentence as a person would print it: marks and contractions closed up, quotes paired, the first letter (and the
    one behind a full stop) a capital. `forms` maps lower-case words to the case they have inside a sentence.
    """
    forms = forms or {}
    pieces: list[str] = []
    open_quotes: set[str] = set()
    glue_next, capital_next, previous = True, True, ""
    for word in words:
        shown = forms.get(word, word)
        if capital_next and shown[:1].isalnum():
            shown = shown[:1].upper() + shown[1:]
        closes = word in open_quotes
        glue = glue_next or closes or _closes_up(word, previous)
        pieces.append(shown if glue else " " + shown)
        opens = not closes and word in _QUOTES and not (word == "'" and glue and previous[-1:].isalnum())
        open_quotes ^= {word} if opens or closes else set()
        glue_next = opens or word in _NO_SPACE_AFTER
        capital_next = _starts_sentence(word, previous, opens, closes, capital_next)
        previous = word
    return "".join(pieces)


def _closes_up(word: str, previous: str) -> bool:
    """Whether `word` is written without a space behind what came before."""
    is_plural_possessive = word == "'" and previous.endswith("s")
    return word in _NO_SPACE_BEFORE or is_plural_possessive or _IS_CLITIC.match(word) is not None


def _starts_sentence(word: str, previous: str, opens: bool, closes: bool, capital: bool) -> bool:
    """Whether the word behind `word` has a capital: it starts a sentence, or speech (`she said, "Go!"`)."""
    if opens:
        return capital or previous in (",", ":")
    if closes:
        return previous == "."
    return word in _SENTENCE_MARKS or (capital and not word[:1].isalnum())


def inner_words(words: Iterable[str]) -> Iterator[str]:
    """The words inside a sentence: all but those whose capital may come from standing first, quotes included."""
    is_first = True
    for word in words:
        if not is_first and word[:1].isalpha():
            yield word
        is_first = word in _SENTENCE_MARKS or word == '"' or (is_first and not word[:1].isalnum())


def cased_forms(sentences: Iterable[list[str]]) -> dict[str, str]:
    """
    The case of words inside sentences, where it is not lower: `[["We", "met", "Tom"]]` -> `{"tom": "Tom"}`. A word
    also seen in lower case is left out.
    """
    inner = [word for words in sentences for word in inner_words(words)]
    lower = {word for word in inner if word.islower()}
    return {word.lower(): word for word in reversed(inner) if word.lower() not in lower}
