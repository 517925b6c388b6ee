"""Directories are written atomically, also by several processes at the same time."""

import errno
import os
from pathlib import Path

import pytest
from concurrent_processes import run_together

from hf_storyend.files import atomic_directory, exclusive_directory, file_lock, scratch_directory


def replace_often(target: Path, letter: str) -> None:
    for _ in range(40):
        with atomic_directory(target) as folder:
            for name in "abc":
                (folder / name).write_text(letter)


def test_concurrent_writes_never_fail_or_mix(tmp_path):
    run_together(replace_often, *((tmp_path / "out", letter) for letter in "wxyz"))
    assert len({path.read_text() for path in (tmp_path / "out").iterdir()}) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def leave_behind(directory: Path, *names: str) -> set[str]:
    for name in names:
        (directory / name).mkdir()
        (directory / name / "work").write_text("half")
    return {path.name for path in directory.iterdir()}


def test_an_exclusive_directory_deletes_what_killed_writers_left_of_it(tmp_path):
    leave_behind(tmp_path, ".out.0a1b2c3d.partial", ".out.1a1b2c3d.old", ".other.0a1b2c3d.partial")
    with exclusive_directory(tmp_path / "out") as folder:
        (folder / "a").write_text("new")
    assert {path.name for path in tmp_path.iterdir()} == {"out", ".other.0a1b2c3d.partial"}


def test_a_scratch_directory_is_deleted_by_itself_or_by_the_next_one(tmp_path):
    leave_behind(tmp_path, ".onnx.0a1b2c3d.partial", "onnx", ".other.0a1b2c3d.partial")
    with pytest.raises(OSError, match="full"), scratch_directory(tmp_path, "onnx") as folder:
        assert folder.parent == tmp_path and not (tmp_path / ".onnx.0a1b2c3d.partial").exists()
        raise OSError("full")
    assert {path.name for path in tmp_path.iterdir()} == {"onnx", ".other.0a1b2c3d.partial"}


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


def test_a_link_in_place_of_a_lock_is_refused(tmp_path, monkeypatch):
    """Where others share the cache, it may lead to any file of the user's."""
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    lock = Path(file_lock(tmp_path / "target").lock_file)
    (tmp_path / "thesis.tex").write_text("years of work")
    lock.symlink_to(tmp_path / "thesis.tex")
    with pytest.raises(ValueError, match="is a link, which this program does not make"):
        file_lock(tmp_path / "target")
    assert (tmp_path / "thesis.tex").read_text() == "years of work"
