"""Data small enough to train on in a second."""

from pathlib import Path

import pytest

from hf_storyend.data.options import PrepareOptions
from hf_storyend.data.prepare import prepare


@pytest.fixture(scope="session")
def prepared(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("prepared") / "embedded"
    sizes = {"vocab_size": 300, "hidden_size": 10, "num_layers": 2, "embedding_size": 8}
    prepare(PrepareOptions(output_dir=directory, **sizes))
    return directory
