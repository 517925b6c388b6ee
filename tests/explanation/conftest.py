"""Tiny models of every kind, and a story with words that they lack."""

from __future__ import annotations

import pytest
import torch

from hf_storyend import IncrementalEncoderConfig, IncrementalEncoderForEndingGeneration
from hf_storyend.systems import SYSTEMS, match_tokenizer

STORY = [
    "Anna put a cake in the oven.",
    "Then Anna and Zorba watched a long film.",
    "The kitchen was full of smoke.",
    "The burnt cake was in the oven.",
]


@pytest.fixture
def story() -> list[str]:
    return list(STORY)


@pytest.fixture
def make_system(tokenizer):
    """A model of a system that fits the tokenizer, which then fits the model."""

    def make(name: str, seed: int = 0, **settings) -> IncrementalEncoderForEndingGeneration:
        torch.manual_seed(seed)
        config = IncrementalEncoderConfig.for_tokenizer(
            tokenizer, embedding_size=8, hidden_size=12, **{**SYSTEMS[name].settings, "num_copy_slots": 3, **settings}
        )
        match_tokenizer(tokenizer, config)
        model = IncrementalEncoderForEndingGeneration(config).eval()
        with torch.no_grad():
            # Sharper than it starts out: else all weights are nearly the same.
            model.get_input_embeddings().weight.mul_(20)
        return model

    return make
