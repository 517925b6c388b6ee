# Copyright 2026 The hf_storyend authors.
# SPDX-License-Identifier: Apache-2.0
"""
The model plugin: the files of this folder are what travels to the Hub with the weights.

Names are imported on first use: text processing needs no torch, and writing an ending no pipeline.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .configuration_incremental_encoder import IncrementalEncoderConfig
    from .knowledge_table import KnowledgeTable
    from .modeling_incremental_encoder import EndingGenerationOutput, IncrementalEncoderForEndingGeneration
    from .pipeline_incremental_encoder import StoryEndingPipeline
    from .tokenization_incremental_encoder import IncrementalEncoderTokenizer

__all__ = [
    "EndingGenerationOutput",
    "IncrementalEncoderConfig",
    "IncrementalEncoderForEndingGeneration",
    "IncrementalEncoderTokenizer",
    "KnowledgeTable",
    "StoryEndingPipeline",
]


def __getattr__(name: str) -> Any:
    module: Any
    if name in ("EndingGenerationOutput", "IncrementalEncoderForEndingGeneration"):
        from . import modeling_incremental_encoder as module
    elif name == "IncrementalEncoderConfig":
        from . import configuration_incremental_encoder as module
    elif name == "IncrementalEncoderTokenizer":
        from . import tokenization_incremental_encoder as module
    elif name == "KnowledgeTable":
        from . import knowledge_table as module
    elif name == "StoryEndingPipeline":
        from . import pipeline_incremental_encoder as module
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return vars(module)[name]


def __dir__() -> list[str]:
    return __all__
