"""Sources and effects in words, and the words of an ending found again in its text."""

from __future__ import annotations

from collections.abc import Sequence

from .result import Effect, Sources, SourceTriple, SourceWord

# Effects within 5 % are not worth a number.
_SAME = 1.05


def source_text(item: SourceWord | SourceTriple) -> str:
    """Return a source as text: `41 % from oven UsedFor burn`, or `12 % from "smoke" in sentence 4`."""
    return f"{percent(item.share)} from {source_name(item)}"


def source_name(item: SourceWord | SourceTriple) -> str:
    """Return a triple, or a word of the story with its sentence."""
    if isinstance(item, SourceTriple):
        return " ".join(item.triple)
    return f'"{item.word}" in sentence {item.sentence}'


def pointed_sources(sources: Sources, min_share: float) -> list[SourceWord | SourceTriple]:
    """Return the places and triples from a share on, highest first."""
    items: list[SourceWord | SourceTriple] = [*sources.triples, *sources.story]
    return sorted((item for item in items if item.share >= min_share), key=lambda item: -item.share)


def percent(share: float) -> str:
    """Return a share as a whole percentage; only a share of 1 is shown as 100 %."""
    rounded = round(100 * share)
    return f"{99 if rounded == 100 and share < 0.9995 else rounded} %"


def effect_text(effect: Effect) -> str:
    """Return how likely the ending is without a part: `3.1 times less likely`, `as likely`, `impossible`."""
    if effect.effect is None:
        return "impossible"
    if effect.factor is None:
        return "practically impossible"
    if effect.factor >= _SAME:
        return f"{_number(effect.factor)} times less likely"
    return f"{_number(1 / effect.factor)} times more likely" if effect.factor * _SAME <= 1 else "as likely"


def _number(factor: float) -> str:
    if factor >= 1e6:
        return f"{factor:.0e}"
    return f"{factor:,.0f}" if factor >= 20 else f"{factor:.1f}"


def align_words(text: str, words: Sequence[str]) -> list[tuple[str, int | None]]:
    """
    Return the text of an ending in pieces, each with the place, from 0, of the word it is; None between words.

    Case may differ. A word that is not found, in order, is left out.
    """
    pieces: list[tuple[str, int | None]] = []
    end = 0
    for place, word in enumerate(words):
        start = text.lower().find(word.lower(), end)
        if not word or start < 0 or len(text.lower()) != len(text):
            continue
        pieces += [(text[end:start], None), (text[start : start + len(word)], place)]
        end = start + len(word)
    return [(piece, place) for piece, place in (*pieces, (text[end:], None)) if piece]
