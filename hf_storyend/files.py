"""Processes that would write the same wait for each other, so that the later ones find what the first has written."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import datasets
from filelock import BaseFileLock, FileLock


def file_digest(path: Path) -> str:
    """SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def written_aside(target: Path) -> Iterator[Path]:
    """
    A new directory beside `target` that takes its place when the block ends well, and vanishes otherwise. What stood
    there before is replaced; of two processes that write the same, the later one wins, and neither sees half a result.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.partial")
    aside.mkdir()
    try:
        yield aside
        _flush(aside)
        _swap(aside, target)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _flush(folder: Path) -> None:
    """Ask for the content to be on the disk before the name is: a crash must not leave a name without content."""
    for path in (*folder.rglob("*"), folder):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _swap(new: Path, target: Path) -> None:
    replaced: list[Path] = []
    try:
        while not _take_place(new, target):
            old = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.old")
            # If another process has just taken it away, the place is free.
            with suppress(FileNotFoundError):
                os.rename(target, old)
                replaced.append(old)
    except OSError:
        # What stood there stays, if nothing new can.
        if replaced and not target.exists():
            os.rename(replaced.pop(), target)
        raise
    finally:
        # Only now: a reader must not wait for a new directory while an old one is being deleted.
        for old in replaced:
            shutil.rmtree(old) if old.is_dir() and not old.is_symlink() else old.unlink()


def _take_place(new: Path, target: Path) -> bool:
    """Whether the place was free. (To ask first would be too late: others come and go.)"""
    try:
        os.rename(new, target)
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
            raise
        return False
    return True


def replace_file(path: Path, text: str) -> None:
    """Write a file such that a reader sees the old content or the new one, never half."""
    aside = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.partial")
    try:
        with aside.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)


def one_at_a_time(target: Path) -> BaseFileLock:
    """
    A block that only one process of the machine runs at a time for the same `target`. The lock ends with the process,
    however that ends, and lies in the cache of `datasets`: nothing is left beside the target.
    """
    locks = Path(datasets.config.HF_DATASETS_CACHE) / "hf_storyend" / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    name = hashlib.sha256(os.fsencode(target.resolve())).hexdigest()
    return FileLock(locks / f"{name}.lock")
