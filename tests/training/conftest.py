"""Small prepared data, and a finished run on them."""

from pathlib import Path

import pytest
from training_runs import small_options

from hf_storyend.data.options import PrepareOptions
from hf_storyend.data.prepare import prepare
from hf_storyend.training import TrainingOptions, train


@pytest.fixture(scope="session")
def prepared(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("prepared") / "embedded"
    sizes = {"vocab_size": 300, "hidden_size": 10, "num_layers": 2, "embedding_size": 8}
    prepare(PrepareOptions(output_dir=directory, **sizes))
    return directory


@pytest.fixture(scope="session")
def finished(prepared, tmp_path_factory) -> TrainingOptions:
    options = small_options(prepared, tmp_path_factory.mktemp("finished") / "run", report_to="tensorboard")
    train(options)
    return options
