"""
Story endings by incremental encoding and commonsense knowledge.

Importing this package registers its classes with transformers' Auto classes.
"""

from pathlib import Path

if not (Path(__file__).parent / "modeling").is_dir():
    # In a source tree modeling/ lies beside this folder; installing puts it inside.
    __path__.append(str(Path(__file__).resolve().parent.parent))

from .explanation import explain
from .modeling import (
    EndingGenerationOutput,
    IncrementalEncoderConfig,
    IncrementalEncoderForEndingGeneration,
    IncrementalEncoderTokenizer,
    KnowledgeTable,
    StoryEndingPipeline,
)
from .pretrained import default_model, register

register()

__all__ = [
    "EndingGenerationOutput",
    "IncrementalEncoderConfig",
    "IncrementalEncoderForEndingGeneration",
    "IncrementalEncoderTokenizer",
    "KnowledgeTable",
    "StoryEndingPipeline",
    "default_model",
    "explain",
]
