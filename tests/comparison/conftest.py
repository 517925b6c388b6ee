"""Small prepared stories, options of a comparison on them, and one finished comparison that tests may copy."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from training_runs import small_options

from hf_storyend.comparison import ComparisonOptions, compare
from hf_storyend.data.options import PrepareOptions
from hf_storyend.data.prepare import prepare
from hf_storyend.training import TrainingOptions

ROWS = "seq2seq, ie, ie.state"


@pytest.fixture(scope="session")
def data(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("compared") / "data"
    prepare(PrepareOptions(output_dir=directory, vocab_size=300, hidden_size=8, num_layers=1, embedding_size=6))
    return directory


@pytest.fixture(scope="session")
def cloze(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("cloze") / "cloze.csv"
    context = ",".join(f"InputSentence{number}" for number in range(1, 5))
    header = f"InputStoryid,{context},RandomFifthSentenceQuiz1,RandomFifthSentenceQuiz2,AnswerRightEnding"
    path.write_text(f"{header}\n1,Mei was tired.,She went home.,She ate.,She sat.,She slept.,She flew.,1\n")
    return path


def training_options(data: Path) -> TrainingOptions:
    return small_options(data, Path("unused"), max_steps=2, eval_steps=1, max_eval_samples=3)


@pytest.fixture
def training(data) -> TrainingOptions:
    return training_options(data)


@pytest.fixture(scope="session")
def finished(data, cloze, tmp_path_factory) -> tuple[Path, dict]:
    """Directory and result of a comparison of three rows with everything measured."""
    output = tmp_path_factory.mktemp("finished") / "out"
    options = ComparisonOptions(
        ROWS,
        output_dir=str(output),
        max_new_tokens=4,
        max_stories=5,
        bootstrap_samples=20,
        cloze=str(cloze),
        ablations=True,
    )
    return output, compare(options, training_options(data))


@pytest.fixture
def copied(finished, tmp_path) -> Path:
    """A copy of the finished comparison."""
    return Path(shutil.copytree(finished[0], tmp_path / "out"))


@pytest.fixture
def options(copied, cloze) -> ComparisonOptions:
    """The options of the finished comparison, for its copy."""
    return ComparisonOptions(
        ROWS,
        output_dir=str(copied),
        max_new_tokens=4,
        max_stories=5,
        bootstrap_samples=20,
        cloze=str(cloze),
        ablations=True,
    )


@pytest.fixture
def messages(caplog):
    """Returns the messages of the comparison since the last call."""
    caplog.set_level("INFO", logger="hf_storyend")

    def take() -> list[str]:
        records = [record for record in caplog.records if record.name.startswith("hf_storyend.comparison")]
        caplog.clear()
        return [record.getMessage() for record in records]

    return take
