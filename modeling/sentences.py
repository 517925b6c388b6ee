"""Splitting a story into sentences, by rule and without any dependency."""

from __future__ import annotations

import re

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
