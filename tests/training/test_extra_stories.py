"""Training stories beside those of the prepared data."""

import itertools
import json
from dataclasses import replace
from pathlib import Path

import pytest
from training_runs import small_options

from hf_storyend.data.options import PrepareOptions
from hf_storyend.data.prepare import prepare
from hf_storyend.training import TrainingOptions, TrainingRun
from hf_storyend.training.data import load_training_data

STORIES = [
    {"context": ["Mei took a cake out of the oven.", "It was black."], "ending": "Zsofia laughed."},
    {"context": ["The river was frozen."], "ending": "They skated home."},
]


@pytest.fixture
def extra(tmp_path) -> Path:
    path = tmp_path / "extra.jsonl"
    path.write_text("".join(json.dumps(story) + "\n" for story in STORIES))
    return path


def test_extra_stories_come_behind_the_training_stories(prepared, extra, tmp_path):
    plain = load_training_data(small_options(prepared, tmp_path / "run"))
    data = load_training_data(small_options(prepared, tmp_path / "run", extra_stories=str(extra)))
    rows, train = data.tokenised["train"], plain.tokenised["train"]
    assert len(rows) == len(train) + 2 and rows[: len(train)] == train[:]
    for row, story in zip(rows.select(range(len(train), len(rows))), STORIES, strict=True):
        expected = plain.tokenizer([story["context"]], text_target=[story["ending"]])
        assert row["input_ids"] == expected["input_ids"][0] and row["labels"] == expected["labels"][0]
        assert row["length"] == max(map(len, row["input_ids"] + [row["labels"]]))
    assert data.tokenised["validation"][:] == plain.tokenised["validation"][:]
    assert data.identity() != plain.identity()


def test_triples_that_were_counted_over_stories_keep_their_weights(extra, tmp_path):
    """Of the prepared stories, held-out weights are used; the extra ones were never counted."""
    directory = tmp_path / "lift"
    sizes = {"vocab_size": 300, "hidden_size": 8, "num_layers": 1, "embedding_size": 8}
    prepare(PrepareOptions(output_dir=str(directory), policy="story_lift", **sizes))
    data = load_training_data(TrainingOptions(data_dir=str(directory), extra_stories=str(extra)))
    rows = data.tokenised["train"]
    assert rows[len(rows) - 1]["held_out_rows"] == [] and any(rows["held_out_weights"][:])


def test_runs_are_told_apart_by_the_content_of_the_file(prepared, extra, tmp_path):
    """What a resumed run compares: equal in any process, other for other stories."""
    options = small_options(prepared, tmp_path / "run", extra_stories=str(extra))
    identity = load_training_data(options).identity()
    moved = replace(options, extra_stories=str(extra.rename(tmp_path / "moved.jsonl")))
    assert load_training_data(moved).identity() == identity
    Path(moved.extra_stories).write_text((tmp_path / "moved.jsonl").read_text().replace("skated", "walked"))
    assert load_training_data(moved).identity() != identity


def test_they_are_trained_on(prepared, extra, tmp_path):
    options = small_options(prepared, tmp_path / "run", extra_stories=str(extra), max_train_samples=1, max_steps=1)
    with TrainingRun(options) as run:
        (update,) = list(itertools.islice(run.updates(), 1))
        assert sorted(update.rows[0]) == [0, 1, 2]
        for batch in update.batches():
            run.backward(run.model(**batch))
        run.step()


def test_a_file_that_is_not_there_is_refused(prepared, tmp_path):
    with pytest.raises(ValueError, match="`extra_stories`: .*nowhere.jsonl is not a file"):
        load_training_data(small_options(prepared, tmp_path / "run", extra_stories=str(tmp_path / "nowhere.jsonl")))
