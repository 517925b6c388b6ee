"""Several processes prepare the same data at the same time: none fails, and the files are those of one alone."""

import json
from dataclasses import replace
from pathlib import Path

import datasets
import pytest
from concurrent_processes import run_together
from datasets import load_from_disk

from hf_storyend.data import PrepareOptions, prepare
from hf_storyend.data.embedded import embedded_stories


@pytest.fixture
def options(tmp_path) -> PrepareOptions:
    file = tmp_path / "stories.jsonl"
    file.write_text("".join(json.dumps(story) + "\n" for story in embedded_stories()[:60]))
    return PrepareOptions(stories=str(file), hidden_size=8, num_layers=1, embedding_size=6)


@pytest.fixture
def alone(options, tmp_path, monkeypatch) -> Path:
    """What one process makes, with a cache of its own."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache of one")
    prepare(replace(options, output_dir=tmp_path / "alone"))
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    return tmp_path / "alone"


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def prepare_and_note(options: PrepareOptions, output: Path, num_proc: int | None, note: Path) -> None:
    report = prepare(replace(options, output_dir=output, num_proc=num_proc))
    note.write_text(json.dumps(report["cached"]))


def test_one_directory(options, alone, tmp_path):
    output, notes = tmp_path / "out", [tmp_path / "first", tmp_path / "second"]
    run_together(prepare_and_note, *((options, output, None, note) for note in notes))
    assert files_of(output) == files_of(alone)
    # One made it, the other one waited and found it.
    assert sorted(json.loads(note.read_text()) for note in notes) == [False, True]
    assert not list(tmp_path.glob(".out*"))


def test_two_directories_share_the_cache_of_ids(options, alone, tmp_path):
    outputs = [tmp_path / "first", tmp_path / "second"]
    run_together(prepare_and_note, *((options, output, None, output.with_suffix(".note")) for output in outputs))
    assert files_of(outputs[0]) == files_of(outputs[1]) == files_of(alone)
    assert len(list((tmp_path / "cache").rglob("train*.arrow"))) == 1


def test_what_a_killed_process_left_in_the_cache_is_deleted(options, alone, tmp_path):
    """`datasets` writes ids to a temporary file beside the one that they get."""
    prepare(replace(options, output_dir=tmp_path / "before"))
    (cached,) = (tmp_path / "cache").rglob("train*.arrow")
    left = cached.with_name("tmp0a1b2c3d")
    left.write_bytes(cached.read_bytes()[:100])
    prepare(replace(options, output_dir=tmp_path / "after"))
    assert [path.name for path in cached.parent.iterdir()] == [cached.name]


def test_a_truncated_cache_file_is_rewritten_once(options, alone, tmp_path):
    prepare(replace(options, output_dir=tmp_path / "before"))
    (cached,) = (tmp_path / "cache").rglob("train*.arrow")
    whole = cached.read_bytes()
    cached.write_bytes(whole[: len(whole) // 2])
    # One of them works with two processes of its own, which may leave two files for one.
    outputs = {tmp_path / "first": 1, tmp_path / "second": 2, tmp_path / "third": None}
    run_together(
        prepare_and_note,
        *((options, output, num_proc, output.with_suffix(".note")) for output, num_proc in outputs.items()),
    )
    expected = load_from_disk(alone / "tokenised")
    for output in outputs:
        tokenised = load_from_disk(output / "tokenised")
        assert {name: rows[:] for name, rows in tokenised.items()} == {
            name: rows[:] for name, rows in expected.items()
        }
