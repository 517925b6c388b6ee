"""The systems that the demo offers, by name; their weights are read when they are first asked for, and once."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from transformers import AutoConfig, AutoModel, AutoTokenizer

from ..defaults import default_model
from ..modeling import (
    IncrementalEncoderConfig,
    IncrementalEncoderForEndingGeneration,
    IncrementalEncoderTokenizer,
)
from ..systems import SYSTEMS


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
