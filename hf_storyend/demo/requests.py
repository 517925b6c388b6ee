"""Requests of a visitor: story, triples and decoding settings, parsed and checked; errors are messages to show."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

from ..modeling.text_processing import normalize_text
from ..story_text import check_story_size, split_story
from .options import DEFAULT_LIMITS, StoryLimits

Decoding = Literal["greedy", "beam_search", "sampling"]
DECODINGS: tuple[Decoding, ...] = get_args(Decoding)
MAX_TRIPLES, MAX_TRIPLE_CHARACTERS, MAX_ENDINGS = 50, 4000, 8
MIN_TEMPERATURE, MAX_TEMPERATURE, MAX_SEED = 0.1, 2.0, 2**31 - 1
MIN_TOP_P, MAX_TOP_K = 0.05, 200
# The presets that all commands share.
_PRESETS = {"greedy": "paper", "beam_search": "readers", "sampling": "sampling"}


@dataclass(frozen=True)
class UserTriple:
    """A triple of the visitor, and the row it was given in, counted from 1."""

    row: int
    head: str
    relation: str
    tail: str

    @property
    def parts(self) -> tuple[str, str, str]:
        """Head, relation and tail."""
        return self.head, self.relation, self.tail


@dataclass(frozen=True)
class EndingRequest:
    """
    A request for endings; equal requests have equal endings.

    Args:
        system: Name of the system that generates the endings.
        sentences: Sentences of the story.
        triples: Knowledge for this story only.
        decoding: `greedy` (the preset `paper`), `beam_search` (the preset `readers`) or `sampling`.
        num_endings: Number of endings; 1 with greedy decoding.
        temperature, seed, top_p, top_k: Settings of sampling, as in `generate()`; a `top_k` of 0 takes all words.
        limits: Longest story that is taken.
    """

    system: str
    sentences: tuple[str, ...]
    triples: tuple[UserTriple, ...] = ()
    decoding: Decoding = "beam_search"
    num_endings: int = 1
    temperature: float = 0.7
    seed: int = 1
    limits: StoryLimits = DEFAULT_LIMITS
    top_p: float = 1.0
    top_k: int = 0

    def __post_init__(self) -> None:
        if not self.sentences:
            raise ValueError("The story has no sentence: write one or two.")
        check_story_size(self.sentences, self.limits.max_sentences, self.limits.max_sentence_length)
        if len(self.triples) > MAX_TRIPLES:
            raise ValueError(f"There are {len(self.triples)} triples; the demo takes at most {MAX_TRIPLES}.")
        if self.decoding not in DECODINGS:
            raise ValueError(f"Decoding must be one of {', '.join(DECODINGS)}; got `{self.decoding}`.")
        _check_whole_number("The number of endings", self.num_endings, 1, MAX_ENDINGS)
        if self.decoding == "greedy" and self.num_endings != 1:
            raise ValueError(f"Greedy decoding gives one ending, not {self.num_endings}: choose another decoding.")
        _check_whole_number("The seed", self.seed, 0, MAX_SEED)
        _check_number("The temperature", self.temperature, MIN_TEMPERATURE, MAX_TEMPERATURE)
        _check_number("Top-p", self.top_p, MIN_TOP_P, 1.0)
        _check_whole_number("Top-k", self.top_k, 0, MAX_TOP_K)

    @property
    def preset(self) -> str:
        """Name of the decoding preset."""
        return _PRESETS[self.decoding]


def parse_story(text: Any, limits: StoryLimits = DEFAULT_LIMITS) -> tuple[str, ...]:
    """Parse a story, one sentence a line or as running text, into sentences."""
    text = _check_text("The story", text, limits.max_characters, "shorten it, or raise `max_characters`")
    if not text.strip():
        raise ValueError("The story is empty: write a sentence or two.")
    if not any(character.isalnum() for character in text):
        raise ValueError(f"The story has no words: {_quote(text.strip())}.")
    return tuple(split_story(text))


def parse_triples(text: Any) -> tuple[UserTriple, ...]:
    """Parse triples, `head, relation, tail` on a line each."""
    lines = _check_text("The list of triples", text, MAX_TRIPLE_CHARACTERS, "shorten it").splitlines()
    return tuple(parse_triple(row, line.split(",")) for row, line in enumerate(lines, start=1) if line.strip())


def parse_triple(row: int, parts: Any) -> UserTriple:
    """Parse a triple from three strings."""
    if not isinstance(parts, (list, tuple)) or not all(isinstance(part, str) for part in parts):
        raise ValueError(f"Triple {row} must be three strings: head, relation, tail; got {_quote(parts)}.")
    cleaned = [normalize_text(part).strip() for part in parts]
    if len(cleaned) != 3 or not all(cleaned):
        given = _quote(", ".join(cleaned))
        raise ValueError(f"Triple {row} must be head, relation, tail, like `oven, UsedFor, bake`; got {given}.")
    return UserTriple(row, *cleaned)


def _check_text(name: str, text: Any, max_characters: int, remedy: str) -> str:
    if not isinstance(text, str):
        raise ValueError(f"{name} must be text; got {_quote(text)}.")
    if len(text) > max_characters:
        raise ValueError(f"{name} has {len(text):,} characters, more than {max_characters:,}: {remedy}.")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError(f"{name} has half a character (a lone surrogate), which no file or page can hold.")
    return normalize_text(text)


def _check_whole_number(name: str, value: Any, minimum: int, maximum: int) -> None:
    if not _is_number(value) or value != int(value) or not minimum <= value <= maximum:
        raise ValueError(f"{name} must be a whole number from {minimum} to {maximum}; got {_quote(value)}.")


def _check_number(name: str, value: Any, minimum: float, maximum: float) -> None:
    if not _is_number(value) or not minimum <= value <= maximum:
        raise ValueError(f"{name} must be a number from {minimum} to {maximum}; got {_quote(value)}.")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _quote(value: Any, max_characters: int = 60) -> str:
    """Quote a value in an error, on one line and cut if it is long."""
    if value is None:
        return "nothing"
    text = " ".join(str(value).split())
    return f"`{text if len(text) <= max_characters else text[: max_characters - 1] + '…'}`"
