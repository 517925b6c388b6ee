"""Endings made wrong on purpose: the right one with its polarity or its person changed."""

from __future__ import annotations

import random
import re

_WORD = re.compile(r"[A-Za-z']+")

_OPPOSITES = """
happy sad; happier sadder; happily sadly; glad upset; excited disappointed; thrilled devastated; proud ashamed;
loved hated; love hate; loves hates; liked disliked; enjoyed hated; won lost; win lose; passed failed; pass fail;
succeeded failed; found lost; great terrible; good bad; better worse; best worst; amazing awful; wonderful
horrible; delicious disgusting; perfect ruined; able unable; easy difficult; easily hardly; lucky unlucky; luckily
unfortunately; fortunately unfortunately; always never; remembered forgot; accepted refused; agreed refused; kept
threw; bought sold; started stopped; healthy sick; relieved worried; safe dangerous; safely dangerously; successful
unsuccessful; everyone nobody; everything nothing; something nothing; more less; laughed cried; smiled frowned;
alive dead; lived died; hired fired; fixed broke; clean dirty; rich poor; early late; full empty; fun boring;
friends enemies; together alone; finally never; beautiful ugly; fast slow; quickly slowly; strong weak; calm angry
"""
_NEGATIONS = """
was wasn't; were weren't; is isn't; are aren't; did didn't; does doesn't; do don't; could couldn't; would wouldn't;
will won't; can can't; had hadn't; has hasn't; have haven't
"""
_PERSONS = "he she; him her; his her; himself herself"


def _pairs(text: str) -> list[tuple[str, str]]:
    return [(pair.split()[0], pair.split()[1]) for pair in text.split(";")]


# Of several opposites the first one counts.
_OPPOSITE = dict(reversed(_pairs(_OPPOSITES)))
_OPPOSITE = {second: first for first, second in reversed(_pairs(_OPPOSITES))} | _OPPOSITE
_NEGATED = dict(_pairs(_NEGATIONS))
_AFFIRMED = {second: first for first, second in _pairs(_NEGATIONS)}
_TO_SHE = dict(_pairs(_PERSONS))
_TO_HE = {"she": "he", "her": "his", "hers": "his", "herself": "himself"}


def with_polarity_changed(ending: str, draw: random.Random) -> str | None:
    """
    The ending with one word turned into its opposite or one verb negated or affirmed; None if it has no such word.

    Args:
        ending: The ending.
        draw: Chooses among the words.
    """
    places = [match for match in _WORD.finditer(ending) if _changed(match.group().lower()) is not None]
    if not places:
        return None
    # A changed negation or feeling says more than "was" to "wasn't".
    telling = [match for match in places if match.group().lower() not in _NEGATED]
    match = draw.choice(telling or places)
    return ending[: match.start()] + _like(match.group(), _changed(match.group().lower())) + ending[match.end() :]


def with_person_changed(ending: str) -> str | None:
    """The ending with he for she or she for he; None if it has neither, or both."""
    words = {word.lower() for word in _WORD.findall(ending)}
    if {"he", "him", "his", "himself"} & words and {"she", "her", "hers", "herself"} & words:
        return None
    table = _TO_SHE if words & {"he", "him", "his", "himself"} else _TO_HE
    if not words & table.keys():
        return None
    return _WORD.sub(lambda match: _like(match.group(), table.get(match.group().lower(), match.group())), ending)


def _changed(word: str) -> str | None:
    return _OPPOSITE.get(word) or _AFFIRMED.get(word) or _NEGATED.get(word)


def _like(word: str, other: str | None) -> str:
    assert other is not None
    return other[0].upper() + other[1:] if word[0].isupper() and word != "I" else other
