"""Pretrained models: the one that comes with the package, loading any other, and generating endings with it.

Torch and transformers are imported by the functions that need them, so that `default_model` costs nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .adapters import register_adapter_targets

if TYPE_CHECKING:
    from .modeling import IncrementalEncoderForEndingGeneration, IncrementalEncoderTokenizer, StoryEndingPipeline

EXAMPLE_STORIES = (
    "Mei put a cake in the oven. She sat down with a good book. The story was very exciting. "
    "Then she smelled smoke from the kitchen.",
    "Omar's old car made a strange noise. He had no money to repair it. He drove to work anyway. "
    "Halfway there the engine stopped.",
    "Nina wanted to win the singing contest. She sang for an hour every day after school. "
    "On the big night her hands were shaking. Her father smiled at her from the first row.",
)

_CONFIG = "config.json"
# A dot before the slash means a path: `../model`.
_HUB_NAME = re.compile(r"[\w.-]*\w/[\w.-]+")


def default_model() -> str:
    """
    Return the directory of the model that comes with the package, for `from_pretrained`.

    ```python
    >>> model = IncrementalEncoderForEndingGeneration.from_pretrained(hf_storyend.default_model())
    ```
    """
    directory = Path(__file__).parent / "assets" / "default_model"
    if not (directory / "model.safetensors").is_file():
        raise OSError(f"{directory} has no model: this copy of hf_storyend was built without it. Reinstall it.")
    return str(directory)


def find_model(name: str | Path | None) -> str:
    """Return a model directory or a name on the Hub, checked by its looks; the package's model if `name` is None."""
    if name is None:
        return default_model()
    name = str(name)
    if not Path(name).is_dir() and not _HUB_NAME.fullmatch(name):
        raise ValueError(
            f"`{name}` is no model: there is no such directory, and a name on the Hub has its owner before it, "
            "like `owner/name`."
        )
    if Path(name).is_dir() and not (Path(name) / _CONFIG).is_file():
        inside = sorted(str(path.parent) for path in Path(name).glob(f"*/{_CONFIG}"))
        hint = f" Is it one of {', '.join(inside[:5])}?" if inside else ""
        raise ValueError(f"`{name}` is no model: it has no {_CONFIG}.{hint}")
    return name


def register() -> None:
    """
    Register the model classes with the Auto classes and the `story-ending` task with `pipeline`.

    Saved models then load without `trust_remote_code`, and LoRA of PEFT knows which layers to adapt. Safe to call
    more than once. Any public name of `hf_storyend` does it on first use; call it where only transformers' names are
    used.
    """
    from transformers import AutoConfig, AutoModel, AutoModelForSeq2SeqLM, AutoTokenizer
    from transformers.pipelines import PIPELINE_REGISTRY

    from .modeling import (
        IncrementalEncoderConfig,
        IncrementalEncoderForEndingGeneration,
        IncrementalEncoderTokenizer,
        StoryEndingPipeline,
    )
    from .modeling.pipeline_incremental_encoder import TASK

    AutoConfig.register(IncrementalEncoderConfig.model_type, IncrementalEncoderConfig, exist_ok=True)
    for auto_class in (AutoModel, AutoModelForSeq2SeqLM):
        auto_class.register(IncrementalEncoderConfig, IncrementalEncoderForEndingGeneration, exist_ok=True)
    AutoTokenizer.register(_tokenizer_key(), IncrementalEncoderTokenizer, exist_ok=True)
    register_adapter_targets(IncrementalEncoderConfig.model_type)
    # Unlike the others, this warns if the task is registered already.
    if TASK not in PIPELINE_REGISTRY.supported_tasks:
        PIPELINE_REGISTRY.register_pipeline(TASK, StoryEndingPipeline, AutoModelForSeq2SeqLM, type="text")


@cache
def _tokenizer_key() -> type:
    """
    Return a configuration class of no model, which registers the tokenizer by its name only.

    For a configuration that has a registered tokenizer, transformers prefers the code of a repository.
    """
    from .modeling import IncrementalEncoderConfig

    return type("TokenizerByName", (IncrementalEncoderConfig,), {})


def load(
    model: str | Path | None = None, **settings: Any
) -> tuple[IncrementalEncoderForEndingGeneration, IncrementalEncoderTokenizer]:
    """
    Load a model, in evaluation mode, and its tokenizer.

    Args:
        model: Model directory or Hub name; default: the model that comes with the package.
        settings: Further arguments of both `from_pretrained`, such as `revision`.
    """
    name = find_model(model)
    if settings.get("trust_remote_code"):
        from transformers import AutoModel, AutoTokenizer

        register()
        return AutoModel.from_pretrained(name, **settings), AutoTokenizer.from_pretrained(name, **settings)
    # Auto classes would import two seconds' worth of what no ending needs.
    from .modeling import IncrementalEncoderForEndingGeneration, IncrementalEncoderTokenizer

    _check_model_type(name, settings)
    return (
        IncrementalEncoderForEndingGeneration.from_pretrained(name, **settings),
        IncrementalEncoderTokenizer.from_pretrained(name, **settings),
    )


def _check_model_type(name: str, settings: dict[str, Any]) -> None:
    """Refuse models of other types before their weights are read."""
    from .modeling import IncrementalEncoderConfig

    found, _ = IncrementalEncoderConfig.get_config_dict(name, **settings)
    if found.get("model_type") != IncrementalEncoderConfig.model_type:
        raise ValueError(other_model_type(name, found.get("model_type")))


def other_model_type(name: str, model_type: Any) -> str:
    """Return what is wrong with a model of another type."""
    return f"`{name}` is a model of type `{model_type}`, which writes no story endings."


def use_threads_of_one_story() -> None:
    """
    Let torch use one thread in this process, unless OMP_NUM_THREADS says how many.

    The operations of a single story are so small that threads wait for each other longer than they work, several times
    as long on a busy machine.
    """
    import torch

    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)


def pipeline(model: str | Path | None = None, **settings: Any) -> StoryEndingPipeline:
    """
    Return a pipeline that maps a story to its endings, each with its score and what its words came from.

    Args:
        model: Model directory or Hub name; default: the model that comes with the package.
        settings: Arguments of `StoryEndingPipeline`: `device`, `batch_size`, those of `generate()`.
    """
    network, tokenizer = load(model)
    from .modeling import StoryEndingPipeline

    return StoryEndingPipeline(model=network, tokenizer=tokenizer, **settings)


def num_default_beams(model: IncrementalEncoderForEndingGeneration, decoding: str | None = None) -> int:
    """Return the number of beams that the pipeline uses unless told otherwise."""
    from .modeling.decoding import default_arguments

    return default_arguments(model, {}, decoding).get("num_beams") or model.generation_config.num_beams or 1


def generate(
    stories: str | Sequence[str], model: str | Path | StoryEndingPipeline | None = None, **settings: Any
) -> str | list[str]:
    """
    Generate the ending of a story, or one for each of several stories.

    Scores, sources and several endings of a story are what `pipeline` returns.

    Args:
        stories: A story, all its sentences in one string, or a list of stories.
        model: Model directory, Hub name or a `pipeline`, which is loaded once for many calls; default: the model that
            comes with the package.
        settings: Arguments of `generate()` such as `num_beams`, and `triples` to add to the model's knowledge.
    """
    if isinstance(stories, str):
        return generate([stories], model, **settings)[0]
    if settings.get("num_return_sequences", 1) != 1:
        raise ValueError("`num_return_sequences` must be 1: `hf_storyend.pipeline` returns more endings of a story.")
    write = _pipeline_of(model)
    return [endings[0]["ending"] for endings in write(list(stories), **settings)]


def _pipeline_of(model: str | Path | StoryEndingPipeline | None) -> StoryEndingPipeline:
    if model is None:
        return _default_pipeline()
    return pipeline(model) if isinstance(model, str | Path) else model


@cache
def _default_pipeline() -> StoryEndingPipeline:
    return pipeline()
