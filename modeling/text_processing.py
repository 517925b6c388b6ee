# Copyright 2026 The hf_storyend authors.
# SPDX-License-Identifier: Apache-2.0
"""Text processing without dependencies: sentence splitting, word tokenisation, detokenisation and truecasing."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence

# Never the end of a sentence: a name follows.
_TITLES = frozenset("mr mrs ms dr prof st mt capt gen sgt lt col maj rev hon gov sen rep pres vs dept approx".split())
# Not the end if a number follows.
_NUMBERED = frozenset("no nos fig vol".split())
# The end of a sentence only if a word that likes to start one follows.
_ABBREVIATIONS = frozenset("jr sr inc co corp ltd etc ave blvd rd a.m p.m e.g i.e u.s u.k u.n d.c ph.d".split())
_STARTERS = frozenset(
    "a after all although an and another as at because before but by during eventually every finally for from he her "
    "his how however i if in instead it its later luckily my next nobody now on once one our she since so some "
    "soon still suddenly that the their then there these they this those though to today two unfortunately we what "
    "when where while who why with yesterday yet you your".split()
)
_SPEECH = frozenset(
    "said asked cried replied yelled shouted whispered answered screamed exclaimed laughed thought told explained "
    "says asks cries replies yells shouts whispers answers".split()
)

# Sentence-final marks, closing quotes or brackets, and the white space (or forgotten space) behind them.
_CANDIDATE = re.compile(
    # Possessive, and only from the first of a row of marks on: a text of nothing else must not take quadratic time.
    r"""(?<![.!?])(?P<mark>[.!?]++)(?P<close>["')\]]*+)
        (?: (?P<space>\s+) | (?<=[a-z][a-z][.!?])(?=[A-Z][a-z]) )""",
    re.VERBOSE,
)
_LAST_WORD = re.compile(r"[\w.&-]+$")
# Longer than any abbreviation: how far back the last word is looked for.
_LAST_WORD_LENGTH = 40
_NEXT_WORDS = re.compile(r"""["'(\[]*([\w']+)(?:\s+([\w']+))?""")
_LINE_BREAK = re.compile(r"\n\s*")


def split_sentences(text: str) -> list[str]:
    """
    The sentences of a story, stripped, never empty.

    Abbreviations, initials, ellipses, numbers and quoted speech (`"Wait! Why?" she asked.`) do not end a sentence; a
    missing final stop does no harm. A line break ends one unless the next line goes on in lower case.
    """
    # Pieces are joined at the end: thousands of them added one by one would be copied thousands of times.
    sentences: list[list[str]] = []
    for line in _split_lines(text.strip()):
        for piece in _split_line(line):
            # A piece without a letter or digit ("...") belongs to the sentence before it.
            if sentences and not any(character.isalnum() for character in piece):
                sentences[-1].append(piece)
            else:
                sentences.append([piece])
    return [" ".join(pieces) for pieces in sentences]


def _split_lines(text: str) -> list[str]:
    lines: list[list[str]] = []
    for line in _LINE_BREAK.split(text):
        line = line.rstrip(" \t")
        goes_on = lines and line[:1].islower() and lines[-1][-1][-1:] not in '.!?"'
        if goes_on:
            lines[-1].append(line)
        elif line:
            lines.append([line])
    return [" ".join(parts) for parts in lines]


def _split_line(line: str) -> list[str]:
    sentences, start = [], 0
    last_quote, num_quotes, counted = line.rfind('"'), 0, 0
    for candidate in _CANDIDATE.finditer(line):
        end = candidate.end()
        num_quotes += line.count('"', counted, end)
        counted = end
        # A double quote is open that will be closed later.
        is_speech = num_quotes % 2 == 1 and last_quote >= end
        if not is_speech and _ends_sentence(line, start, candidate):
            sentences.append(line[start:end].strip())
            start, num_quotes = end, 0
    rest = line[start:].strip()
    return [*sentences, rest] if rest else sentences


def _ends_sentence(line: str, start: int, candidate: re.Match[str]) -> bool:
    mark = candidate["mark"]
    next_words = _NEXT_WORDS.match(line, candidate.end())
    if next_words is None:
        return True
    next_word, second_word = next_words[1], (next_words[2] or "").lower()
    if candidate["close"] and (next_word.lower() in _SPEECH or second_word in _SPEECH):
        return False
    if next_word[0].islower() and (candidate["close"] or mark.endswith("..")):
        return False
    before = line[max(start, candidate.start() - _LAST_WORD_LENGTH) : candidate.start()]
    return mark != "." or _stop_ends_sentence(before, next_word)


def _stop_ends_sentence(before: str, next_word: str) -> bool:
    """Whether a single full stop behind `before` ends a sentence, given the word that follows."""
    last_word = _LAST_WORD.search(before)
    if last_word is None:
        return True
    word = last_word[0]
    if word.lower() in _TITLES or (word.lower() in _NUMBERED and next_word[0].isdigit()):
        return False
    if word.lower() in _ABBREVIATIONS or "." in word:
        return next_word[0].isupper() and next_word.lower() in _STARTERS
    is_initial = len(word) == 1 and word.isupper() and word != "I"
    return not is_initial or next_word.lower() in _STARTERS


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
            capital = shown[:1].upper()
            # Of a ligature there is none: as two letters it would be another word.
            shown = capital + shown[1:] if capital.lower() == shown[:1].lower() else shown
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


def truecase_forms(sentences: Iterable[list[str]]) -> dict[str, str]:
    """
    The case of words inside sentences, where it is not lower: `[["We", "met", "Tom"]]` -> `{"tom": "Tom"}`. A word
    also seen in lower case is left out.
    """
    inner = [word for words in sentences for word in inner_words(words)]
    lower = {word for word in inner if word.islower()}
    return {word.lower(): word for word in reversed(inner) if word.lower() not in lower}


class OOVWords:
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
        self.slot_ids = {word: len(vocabulary) + number for number, word in enumerate(self.words)}

    def ids(self, words: Iterable[str]) -> list[int]:
        """Ids of words: those of the vocabulary, of the story's slots, or the unknown word's."""
        return [self._vocabulary.get(word, self.slot_ids.get(word, self._unknown_id)) for word in words]


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
