"""Several processes that prepare the same data at the same moment: the files of one alone, and nobody fails."""

import errno
import json
import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from pathlib import Path

import datasets
import pytest
from datasets import load_from_disk

from hf_storyend.data.stories import embedded_stories
from hf_storyend.files import atomic_directory
from hf_storyend.preparation import PreparationOptions, prepare

FORK = multiprocessing.get_context("fork")


@pytest.fixture
def options(tmp_path) -> PreparationOptions:
    file = tmp_path / "stories.jsonl"
    file.write_text("".join(json.dumps(story) + "\n" for story in embedded_stories()[:60]))
    return PreparationOptions(stories=str(file), hidden_size=8, num_layers=1, embedding_size=6)


@pytest.fixture
def alone(options, tmp_path, monkeypatch) -> Path:
    """What one process makes, with a cache of its own."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache of one")
    prepare(options, tmp_path / "alone")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    return tmp_path / "alone"


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def together(work: Callable[..., None], *arguments: tuple) -> None:
    """One process for each set of arguments; all set out at once and end well."""
    barrier = FORK.Barrier(len(arguments))
    processes = [FORK.Process(target=work, args=(barrier, *values)) for values in arguments]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * len(arguments)


def prepare_with_others(
    barrier: Barrier, options: PreparationOptions, output: Path, num_proc: int | None, note: Path
) -> None:
    barrier.wait()
    report = prepare(options, output, num_proc=num_proc)
    note.write_text(json.dumps(report["cached"]))


def test_one_directory(options, alone, tmp_path):
    output, notes = tmp_path / "out", [tmp_path / "first", tmp_path / "second"]
    together(prepare_with_others, *((options, output, None, note) for note in notes))
    assert files_of(output) == files_of(alone)
    # One made it, the other one waited and found it.
    assert sorted(json.loads(note.read_text()) for note in notes) == [False, True]
    assert not list(tmp_path.glob(".out*"))


def test_two_directories_share_the_cache_of_ids(options, alone, tmp_path):
    outputs = [tmp_path / "first", tmp_path / "second"]
    together(prepare_with_others, *((options, output, None, output.with_suffix(".note")) for output in outputs))
    assert files_of(outputs[0]) == files_of(outputs[1]) == files_of(alone)
    assert len(list((tmp_path / "cache").rglob("train*.arrow"))) == 1


def test_a_cut_file_in_the_cache_is_mended_once(options, alone, tmp_path):
    prepare(options, tmp_path / "before")
    (cached,) = (tmp_path / "cache").rglob("train*.arrow")
    whole = cached.read_bytes()
    cached.write_bytes(whole[: len(whole) // 2])
    # One of them works with two processes of its own, which may leave two files for one.
    outputs = {tmp_path / "first": 1, tmp_path / "second": 2, tmp_path / "third": None}
    together(
        prepare_with_others,
        *((options, output, num_proc, output.with_suffix(".note")) for output, num_proc in outputs.items()),
    )
    expected = load_from_disk(alone / "tokenised")
    for output in outputs:
        tokenised = load_from_disk(output / "tokenised")
        assert {name: rows[:] for name, rows in tokenised.items()} == {
            name: rows[:] for name, rows in expected.items()
        }


def replace_often(barrier: Barrier, target: Path, letter: str) -> None:
    barrier.wait()
    for _ in range(40):
        with atomic_directory(target) as folder:
            for name in "abc":
                (folder / name).write_text(letter)


def test_many_that_replace_one_directory_never_fail_or_mix(tmp_path):
    together(replace_often, *((tmp_path / "out", letter) for letter in "wxyz"))
    assert len({path.read_text() for path in (tmp_path / "out").iterdir()}) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_link_is_replaced_and_what_it_points_to_stays(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "thesis.tex").write_text("years of work")
    (tmp_path / "out").symlink_to(tmp_path / "elsewhere")
    with atomic_directory(tmp_path / "out") as folder:
        (folder / "a").write_text("new")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["a"]
    assert (tmp_path / "elsewhere" / "thesis.tex").read_text() == "years of work"


def test_what_stood_there_stays_if_nothing_new_can(tmp_path, monkeypatch):
    target = tmp_path / "out"
    target.mkdir()
    (target / "mine").write_text("old")
    rename, refusals = os.rename, [OSError(errno.ENOTEMPTY, "taken"), OSError(errno.EIO, "the disk is broken")]

    def failing(source, destination):
        if destination == target and refusals:
            raise refusals.pop(0)
        rename(source, destination)

    monkeypatch.setattr(os, "rename", failing)
    with pytest.raises(OSError, match="the disk is broken"), atomic_directory(target) as folder:
        (folder / "mine").write_text("new")
    assert (target / "mine").read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]
