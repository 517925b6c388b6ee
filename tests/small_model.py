"""A small model of any system, with attention that is not uniform."""

from __future__ import annotations

import torch

from hf_storyend import (
    IncrementalEncoderConfig,
    IncrementalEncoderForEndingGeneration,
    IncrementalEncoderTokenizer,
)
from hf_storyend.systems import SYSTEMS, match_tokenizer


def small_model(
    system: str, tokenizer: IncrementalEncoderTokenizer, **settings
) -> IncrementalEncoderForEndingGeneration:
    """Return an untrained model that fits the tokenizer, which is set to fit the system."""
    torch.manual_seed(0)
    config = IncrementalEncoderConfig.for_tokenizer(
        tokenizer,
        **{"embedding_size": 8, "hidden_size": 12, **SYSTEMS[system].settings, "num_copy_slots": 3, **settings},
    )
    match_tokenizer(tokenizer, config)
    model = IncrementalEncoderForEndingGeneration(config).eval()
    with torch.no_grad():
        # At the initial scale all attention weights are nearly equal.
        model.get_input_embeddings().weight.mul_(20)
    return model
