# Copyright 2026 The hf_storyend authors.
# SPDX-License-Identifier: Apache-2.0
"""The model plugin: the files of this folder are what travels to the Hub with the weights."""

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
