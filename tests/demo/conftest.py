"""Tiny models on disk, for writers, servers and browsers."""

from __future__ import annotations

import pytest
import torch
from small_tokenizer import small_tokenizer

from hf_storyend import IncrementalEncoderConfig, IncrementalEncoderForEndingGeneration
from hf_storyend.systems import SYSTEMS, match_tokenizer


def save_system(name: str, folder) -> str:
    """A model of a system that has learnt nothing."""
    tokenizer = small_tokenizer()
    torch.manual_seed(0)
    config = IncrementalEncoderConfig.for_tokenizer(
        tokenizer, embedding_size=8, hidden_size=12, num_copy_slots=3, **SYSTEMS[name].settings
    )
    match_tokenizer(tokenizer, config)
    model = IncrementalEncoderForEndingGeneration(config)
    with torch.no_grad():
        # Sharper than it starts out: else all weights are nearly the same.
        model.get_input_embeddings().weight.mul_(20)
    model.generation_config.max_new_tokens = 6
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory) -> str:
    return save_system("ie-msa-ga", tmp_path_factory.mktemp("models") / "knowing")


@pytest.fixture(scope="session")
def plain_folder(tmp_path_factory) -> str:
    return save_system("hlstm-copy", tmp_path_factory.mktemp("models") / "plain")
