"""Small models on disk, for generators, servers and browsers."""

from __future__ import annotations

import pytest
from small_model import small_model
from small_tokenizer import small_tokenizer


def save_model(system: str, directory, user_weight: float | None = None) -> str:
    tokenizer = small_tokenizer()
    if user_weight is not None:
        tokenizer.knowledge.weights = {("treat", "RelatedTo", "friday"): user_weight}
    model = small_model(system, tokenizer)
    model.generation_config.max_new_tokens = 6
    model.save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return str(directory)


@pytest.fixture(scope="session")
def model_directory(tmp_path_factory) -> str:
    return save_model("ie-msa-ga", tmp_path_factory.mktemp("models") / "knowing")


@pytest.fixture(scope="session")
def copying_directory(tmp_path_factory) -> str:
    """A model without knowledge that copies."""
    return save_model("hlstm-copy", tmp_path_factory.mktemp("models") / "copying")


@pytest.fixture(scope="session")
def pointing_directory(tmp_path_factory) -> str:
    """A model with a tail pointer and without knowledge attention; triples of visitors are sure to give words."""
    return save_model("ie-copy-tails", tmp_path_factory.mktemp("models") / "pointing", user_weight=30.0)
