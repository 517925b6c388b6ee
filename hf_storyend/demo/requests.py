"""The systems that the demo offers, by name; their weights are read when they are first asked for, and once."""

from __future__ import annotations

import importlib
import math
import os
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from transformers import AutoConfig, AutoModel, AutoTokenizer

from ..explanation.story import split_story as sentences_of
from ..modeling import IncrementalEncoderConfig, IncrementalEncoderForEndingGeneration, IncrementalEncoderTokenizer
from ..modeling.words import normalize_text, split_words
from ..pretrained import default_model
from ..systems import SYSTEMS


def gradio_library() -> Any:
    """Gradio, loaded when the page is built."""
    # Unless told otherwise it keeps the times of the last 10,000 requests, and sums all of them up after each one.
    os.environ.setdefault("GRADIO_ANALYTICS_MAX_EVENTS", "64")
    os.environ.setdefault("GRADIO_ANALYTICS_CACHE_FREQUENCY", str(10**9))
    try:
        return importlib.import_module("gradio")
    except ImportError as error:
        raise ImportError('The demo needs gradio. Install it with `pip install "hf_storyend[demo]"`.') from error


Mode = Literal["greedy", "beams", "samples"]
MODES: tuple[Mode, ...] = get_args(Mode)
# Far beyond any story of the corpus; above, pictures take too long to draw for others to wait.
MAX_CHARACTERS, MAX_SENTENCES, MAX_WORDS, MAX_TRIPLES, MAX_ENDINGS = 4000, 12, 50, 50, 8
MIN_TEMPERATURE, MAX_TEMPERATURE, MAX_SEED = 0.1, 2.0, 2**31 - 1


@dataclass(frozen=True)
class OwnTriple:
    """A triple of the visitor's, and the row it was given in, counted from 1."""

    row: int
    head: str
    relation: str
    tail: str

    @property
    def parts(self) -> tuple[str, str, str]:
        return self.head, self.relation, self.tail


@dataclass(frozen=True)
class EndingRequest:
    """
    One request. The same one gives the same endings, whenever and however often it is made.

    Args:
        system: Name of the system that is to write.
        sentences: Those of the story.
        triples: Knowledge for this story only.
        mode: `greedy`, `beams` or `samples`.
        num_endings: So many; greedy search writes one.
        temperature, seed: For samples.
    """

    system: str
    sentences: tuple[str, ...]
    triples: tuple[OwnTriple, ...] = ()
    mode: Mode = "greedy"
    num_endings: int = 1
    temperature: float = 0.7
    seed: int = 1

    def __post_init__(self) -> None:
        _check_sentences(self.sentences)
        if len(self.triples) > MAX_TRIPLES:
            raise ValueError(f"There are {len(self.triples)} triples; the demo takes {MAX_TRIPLES} at most.")
        if self.mode not in MODES:
            raise ValueError(f"Endings are written by one of {', '.join(MODES)}; got `{self.mode}`.")
        _check_whole("The number of endings", self.num_endings, 1, MAX_ENDINGS)
        if self.mode == "greedy" and self.num_endings != 1:
            raise ValueError(f"Greedy search writes one ending, not {self.num_endings}: choose beams or samples.")
        _check_whole("The seed", self.seed, 0, MAX_SEED)
        if not _is_number(self.temperature) or not MIN_TEMPERATURE <= self.temperature <= MAX_TEMPERATURE:
            allowed = f"a number from {MIN_TEMPERATURE} to {MAX_TEMPERATURE}"
            raise ValueError(f"The temperature must be {allowed}; got {_shown(self.temperature)}.")


def read_sentences(text: Any) -> tuple[str, ...]:
    """The sentences of a story given as text: one a line, or several in a row."""
    text = _checked_text("The story", text)
    if not text.strip():
        raise ValueError("The story is empty: write a sentence or two.")
    if not any(character.isalnum() for character in text):
        raise ValueError(f"The story has no words: {_shown(text.strip())}.")
    return tuple(sentences_of(text))


def read_triples(text: Any) -> tuple[OwnTriple, ...]:
    """Triples given as text, `head, relation, tail` on a line of its own."""
    lines = _checked_text("The list of triples", text).splitlines()
    return tuple(read_triple(row, line.split(",")) for row, line in enumerate(lines, start=1) if line.strip())


def read_triple(row: int, parts: Any) -> OwnTriple:
    """A triple given as three pieces of text."""
    if not isinstance(parts, (list, tuple)) or not all(isinstance(part, str) for part in parts):
        raise ValueError(f"Triple {row} must be three pieces of text: head, relation, tail; got {_shown(parts)}.")
    cleaned = [normalize_text(part).strip() for part in parts]
    if len(cleaned) != 3 or not all(cleaned):
        given = _shown(", ".join(cleaned))
        raise ValueError(f"Triple {row} must be head, relation, tail, like `oven, UsedFor, bake`; got {given}.")
    return OwnTriple(row, *cleaned)


def _checked_text(name: str, text: Any) -> str:
    if not isinstance(text, str):
        raise ValueError(f"{name} must be text; got {_shown(text)}.")
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"{name} has {len(text):,} characters; the demo takes {MAX_CHARACTERS:,} at most.")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError(f"{name} has half a character (a lone surrogate), which no file or page can hold.")
    return normalize_text(text)


def _check_sentences(sentences: tuple[str, ...]) -> None:
    if not 1 <= len(sentences) <= MAX_SENTENCES:
        raise ValueError(f"The story has {len(sentences)} sentences; the demo takes 1 to {MAX_SENTENCES}.")
    for number, sentence in enumerate(sentences, start=1):
        num_words = len(split_words(normalize_text(sentence)))
        if not 1 <= num_words <= MAX_WORDS:
            raise ValueError(f"Sentence {number} has {num_words} words; the demo takes 1 to {MAX_WORDS}.")


def _check_whole(name: str, value: Any, minimum: int, maximum: int) -> None:
    if not _is_number(value) or value != int(value) or not minimum <= value <= maximum:
        raise ValueError(f"{name} must be a whole number from {minimum} to {maximum}; got {_shown(value)}.")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _shown(value: Any, max_characters: int = 60) -> str:
    """A value such that it fits in a sentence."""
    if value is None:
        return "nothing"
    text = str(value)
    return f"`{text if len(text) <= max_characters else text[: max_characters - 1] + '…'}`"


@dataclass(frozen=True)
class LoadedSystem:
    """A model and its tokenizer."""

    model: IncrementalEncoderForEndingGeneration
    tokenizer: IncrementalEncoderTokenizer


class SystemShelf:
    """
    Models by the names that a visitor chooses among.

    Args:
        models: Directories of models, or names on the Hub; the model that comes with the package if there are none.
    """

    def __init__(self, models: Sequence[str] = ()):
        models = list(dict.fromkeys(models)) or [default_model()]
        self._models = dict(zip(_names(models), models, strict=True))
        self._loaded: dict[str, LoadedSystem] = {}
        self._loading = threading.Lock()

    @property
    def names(self) -> list[str]:
        """Names of the systems, in the order they were given in."""
        return list(self._models)

    def get(self, name: str) -> LoadedSystem:
        """The system of that name."""
        if name not in self._models:
            raise ValueError(f"There is no system `{name}`; choose one of {', '.join(self._models)}.")
        with self._loading:
            if name not in self._loaded:
                self._loaded[name] = _load(self._models[name])
        return self._loaded[name]


def _load(model: str) -> LoadedSystem:
    return LoadedSystem(AutoModel.from_pretrained(model).eval(), AutoTokenizer.from_pretrained(model))


def _names(models: Sequence[str]) -> list[str]:
    """What the models are called: the last part of their path, all of it where two have the same, and the system."""
    short = [_short_name(model) for model in models]
    counts = Counter(short)
    return [
        f"{name if counts[name] == 1 else model} ({_system_name(model)})"
        for name, model in zip(short, models, strict=True)
    ]


def _short_name(model: str) -> str:
    path = Path(model)
    if not path.is_dir():
        return model
    return "default" if path.resolve() == Path(default_model()).resolve() else path.resolve().name


def _system_name(model: str) -> str:
    """The system that a model is, by its configuration; reading that also tells whether there is such a model."""
    config = AutoConfig.from_pretrained(model)
    if not isinstance(config, IncrementalEncoderConfig):
        raise ValueError(f"`{model}` is a model of type `{config.model_type}`, not one that writes story endings.")
    settings = {"story_encoder": config.story_encoder, "knowledge": config.knowledge, "copy": config.copy}
    return next((name for name, system in SYSTEMS.items() if system.settings == settings), config.story_encoder)
