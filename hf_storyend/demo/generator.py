"""Endings for requests: a cache of models by name, and generation that is deterministic and thread-safe."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig

from ..explanation.explain_story import explain_ending
from ..explanation.inference import generate_endings
from ..explanation.result import Explanation
from ..explanation.story import TokenizedStory, find_triples, reads_triples, tokenize_story
from ..modeling import IncrementalEncoderConfig, IncrementalEncoderForEndingGeneration, IncrementalEncoderTokenizer
from ..modeling.decoding import PRESETS, default_arguments
from ..pretrained import default_model, find_model, load, other_model_type, register
from ..story_text import notes_on_story
from ..systems import SYSTEMS
from .memory import release_free_memory
from .requests import EndingRequest, UserTriple

_MAX_CACHED_REQUESTS = 32
# All threads share torch's random generator: samples must not be drawn at the same time.
_SAMPLING = threading.Lock()


@dataclass(frozen=True)
class GeneratedEndings:
    """
    The endings of a request.

    Args:
        endings: An explanation of each ending.
        without_triples: The first ending without the visitor's triples; None if there are no such triples.
        notes: What to know of the story: words that are not in the vocabulary, text that is hardly English.
    """

    endings: tuple[Explanation, ...]
    without_triples: Explanation | None = None
    notes: tuple[str, ...] = ()


class EndingGenerator:
    """
    Generates endings with any of several models, and caches the last requests.

    Args:
        models: Model directories or Hub names; default: the model that comes with the package.
    """

    def __init__(self, models: Sequence[str] = ()):
        self._models = ModelCache(models)
        self.generate = lru_cache(maxsize=_MAX_CACHED_REQUESTS)(self._generate)

    @property
    def systems(self) -> list[str]:
        """Names of the systems to choose among; the first one is the default."""
        return self._models.names

    @property
    def paths(self) -> list[str]:
        """Model directory or Hub name of each system."""
        return self._models.paths

    def relations(self, system: str) -> list[str]:
        """Return the relations that triples for a system can have; none if it reads no triples."""
        loaded = self._models.get(system)
        if not reads_triples(loaded.model):
            return []
        # `dbpedia/genre` and the like are not for people to choose.
        return sorted(name for name in loaded.tokenizer.knowledge.relations if "/" not in name)

    def _generate(self, request: EndingRequest) -> GeneratedEndings:
        try:
            return self._generate_with_model(request)
        finally:
            release_free_memory()

    def _generate_with_model(self, request: EndingRequest) -> GeneratedEndings:
        loaded = self._models.get(request.system)
        plain = tokenize_story(loaded.model, loaded.tokenizer, request.sentences)
        story = _add_triples(loaded, request) if request.triples else plain
        endings = [
            explain_ending(loaded.model, loaded.tokenizer, story, ids)
            for ids in _generate_ids(loaded.model, story, request)
        ]
        notes = tuple(notes_on_story(loaded.tokenizer, request.sentences).lines())
        if not request.triples:
            return GeneratedEndings(tuple(endings), notes=notes)
        ids = _generate_ids(loaded.model, plain, request)[0]
        before = explain_ending(loaded.model, loaded.tokenizer, plain, ids)
        return GeneratedEndings(tuple(endings), before, notes)


def _generate_ids(
    model: IncrementalEncoderForEndingGeneration, story: TokenizedStory, request: EndingRequest
) -> list[list[int]]:
    arguments = _generate_arguments(model, request)
    if request.decoding != "sampling":
        return generate_endings(model, story, **arguments)
    with _SAMPLING, torch.random.fork_rng():
        torch.manual_seed(int(request.seed))
        return generate_endings(model, story, **arguments)


def _generate_arguments(model: IncrementalEncoderForEndingGeneration, request: EndingRequest) -> dict[str, Any]:
    num_endings = int(request.num_endings)
    if request.preset == "readers":
        return default_arguments(model, {"num_return_sequences": num_endings}, request.preset)
    arguments = {"num_return_sequences": num_endings, "do_sample": False, **PRESETS[request.preset]}
    if request.decoding != "sampling":
        return arguments
    return {
        **arguments,
        "temperature": float(request.temperature),
        "top_p": float(request.top_p),
        "top_k": int(request.top_k),
    }


def _add_triples(loaded: LoadedModel, request: EndingRequest) -> TokenizedStory:
    """Tokenize the story with the visitor's triples; an error names the row of a triple that can't be used."""
    if not reads_triples(loaded.model):
        raise ValueError(f"{request.system} reads no knowledge: remove the triples, or choose another system.")
    for triple in request.triples:
        _check_vocabulary(loaded.tokenizer, triple)
    triples = [triple.parts for triple in request.triples]
    story = tokenize_story(loaded.model, loaded.tokenizer, request.sentences, triples)
    for triple in request.triples:
        find_triples(loaded.tokenizer, story, f"Triple {triple.row}", [triple.parts])
    return story


def _check_vocabulary(tokenizer: IncrementalEncoderTokenizer, triple: UserTriple) -> None:
    head, tail = ((word.lower() if tokenizer.do_lower_case else word) for word in (triple.head, triple.tail))
    problems = tokenizer.knowledge.problems_with([(head, triple.relation, tail)], tokenizer.get_vocab())
    for problem in problems.values():
        raise ValueError(f"Triple {triple.row} can't be used: {problem}.")


@dataclass(frozen=True)
class LoadedModel:
    """A model and its tokenizer."""

    model: IncrementalEncoderForEndingGeneration
    tokenizer: IncrementalEncoderTokenizer


class ModelCache:
    """
    Models by name, each loaded once, on first use.

    Args:
        models: Model directories or Hub names; default: the model that comes with the package. One that does not exist
            is an error at once.
    """

    def __init__(self, models: Sequence[str] = ()):
        models = list(dict.fromkeys(models)) or [default_model()]
        register()
        self._models = dict(zip(_names(models), models, strict=True))
        self._loaded: dict[str, LoadedModel] = {}
        self._loading = threading.Lock()

    @property
    def names(self) -> list[str]:
        """Names of the models, in the order they were given."""
        return list(self._models)

    @property
    def paths(self) -> list[str]:
        """Directories or Hub names, in the order they were given."""
        return list(self._models.values())

    def get(self, name: str) -> LoadedModel:
        """Return the model of that name."""
        if name not in self._models:
            raise ValueError(f"There is no system `{name}`; choose one of {', '.join(self._models)}.")
        with self._loading:
            if name not in self._loaded:
                self._loaded[name] = LoadedModel(*load(self._models[name]))
        return self._loaded[name]


def _names(models: Sequence[str]) -> list[str]:
    """Name each model: the last part of its path, or the whole path where that is ambiguous, and its system."""
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
    """Return the system of a model by its configuration; a model that does not exist is an error."""
    config = AutoConfig.from_pretrained(find_model(model))
    if not isinstance(config, IncrementalEncoderConfig):
        raise ValueError(other_model_type(model, config.model_type))
    names = (name for name, system in SYSTEMS.items() if _is_system(config, system.settings))
    return next(names, config.story_encoder)


def _is_system(config: IncrementalEncoderConfig, settings: Mapping[str, Any]) -> bool:
    return all(getattr(config, name) == value for name, value in settings.items())
