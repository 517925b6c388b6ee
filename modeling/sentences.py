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
    r"""(?P<mark>[.!?]+)(?P<close>["')\]]*)
        (?: (?P<space>\s+) | (?<=[a-z][a-z][.!?])(?=[A-Z][a-z]) )""",
    re.VERBOSE,
)
_LAST_WORD = re.compile(r"[\w.&-]+$")
_NEXT_WORDS = re.compile(r"""["'(\[]*([\w']+)(?:\s+([\w']+))?""")
_LINE_BREAK = re.compile(r"[ \t]*\n\s*")


def split_sentences(text: str) -> list[str]:
    """
    The sentences of a story, stripped, never empty.

    Abbreviations, initials, ellipses, numbers and quoted speech (`"Wait! Why?" she asked.`) do not end a sentence; a
    missing final stop does no harm. A line break ends one unless the next line goes on in lower case.
    """
    sentences: list[str] = []
    for line in _split_lines(text.strip()):
        for sentence in _split_line(line):
            # A piece without a letter or digit ("...") belongs to the sentence before it.
            if sentences and not any(character.isalnum() for character in sentence):
                sentences[-1] += " " + sentence
            else:
                sentences.append(sentence)
    return sentences


def _split_lines(text: str) -> list[str]:
    lines: list[str] = []
    for line in _LINE_BREAK.split(text):
        goes_on = lines and line[:1].islower() and lines[-1][-1:] not in '.!?"'
        if goes_on:
            lines[-1] += " " + line
        elif line:
            lines.append(line)
    return lines


def _split_line(line: str) -> list[str]:
    sentences, start = [], 0
    for candidate in _CANDIDATE.finditer(line):
        if _ends_sentence(line, start, candidate):
            sentences.append(line[start : candidate.end()].strip())
            start = candidate.end()
    rest = line[start:].strip()
    return [*sentences, rest] if rest else sentences


def _ends_sentence(line: str, start: int, candidate: re.Match[str]) -> bool:
    mark, end = candidate["mark"], candidate.end()
    if _is_inside_quotes(line, start, end):
        return False
    next_words = _NEXT_WORDS.match(line, end)
    if next_words is None:
        return True
    next_word, second_word = next_words[1], (next_words[2] or "").lower()
    if candidate["close"] and (next_word.lower() in _SPEECH or second_word in _SPEECH):
        return False
    if next_word[0].islower() and (candidate["close"] or mark.endswith("..")):
        return False
    return mark != "." or _stop_ends_sentence(line[start : candidate.start()], next_word)


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


def _is_inside_quotes(line: str, start: int, end: int) -> bool:
    """Whether a double quote is open at `end` that will be closed later."""
    return line.count('"', start, end) % 2 == 1 and line.find('"', end) >= 0
