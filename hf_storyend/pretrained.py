"""Makes the installed classes known to transformers, so that saved models load without `trust_remote_code`."""

from __future__ import annotations

from pathlib import Path

from transformers import AutoConfig, AutoModel, AutoModelForSeq2SeqLM, AutoTokenizer
from transformers.pipelines import PIPELINE_REGISTRY

from .modeling import (
    IncrementalEncoderConfig,
    IncrementalEncoderForEndingGeneration,
    IncrementalEncoderTokenizer,
    StoryEndingPipeline,
)
from .modeling.pipeline_incremental_encoder import TASK


def default_model() -> str:
    """
    The directory of the model that comes with the package, for `from_pretrained`.

    ```python
    >>> model = IncrementalEncoderForEndingGeneration.from_pretrained(hf_storyend.default_model())
    ```
    """
    directory = Path(__file__).parent / "assets" / "default_model"
    if not (directory / "model.safetensors").is_file():
        raise OSError(f"{directory} has no model: this copy of hf_storyend was made without it. Install it anew.")
    return str(directory)


EXAMPLE_STORIES = (
    "Mei put a cake in the oven. She sat down with a good book. The story was very exciting. "
    "Then she smelled smoke from the kitchen.",
    "Omar's old car made a strange noise. He had no money to repair it. He drove to work anyway. "
    "Halfway there the engine stopped.",
    "Nina wanted to win the singing contest. She sang for an hour every day after school. "
    "On the big night her hands were shaking. Her father smiled at her from the first row.",
)


def register() -> None:
    """Safe to call more than once."""
    config_class = IncrementalEncoderConfig
    AutoConfig.register(config_class.model_type, config_class, exist_ok=True)
    for auto_class in (AutoModel, AutoModelForSeq2SeqLM):
        auto_class.register(config_class, IncrementalEncoderForEndingGeneration, exist_ok=True)
    AutoTokenizer.register(config_class, IncrementalEncoderTokenizer, exist_ok=True)
    # Unlike the others, this warns when it is there already.
    if TASK not in PIPELINE_REGISTRY.supported_tasks:
        PIPELINE_REGISTRY.register_pipeline(TASK, StoryEndingPipeline, AutoModelForSeq2SeqLM, type="text")
