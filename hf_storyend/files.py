"""Atomic writes of files and directories, inter-process file locks and digests."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from filelock import BaseFileLock


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def atomic_write(path: Path, text: str) -> None:
    """Write a text file atomically and durably: after a crash, readers see the old content or the new one."""
    temporary = temporary_sibling(path, "partial")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic_directory(target: Path) -> Iterator[Path]:
    """
    Write a directory atomically and durably.

    Yields a temporary directory beside `target`, which replaces `target` if the block succeeds and is deleted if it
    raises. If two processes write the same target, the later one wins; neither reads a partial result. A loss of power
    may leave the directory under a temporary name: `manifest.recover_directory` finds it.
    """
    make_directory(target.parent)
    temporary = temporary_sibling(target, "partial")
    temporary.mkdir()
    try:
        yield temporary
        reset_permissions(temporary)
        sync_tree(temporary)
        _swap(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def exclusive_directory(target: Path) -> Iterator[Path]:
    """As [`atomic_directory`], one writer at a time, who first deletes what killed ones have left behind."""
    with file_lock(target):
        if target.parent.is_dir():
            remove_leftovers(target.parent, re.escape(target.name))
        with atomic_directory(target) as folder:
            yield folder


@contextmanager
def scratch_directory(parent: Path, name: str) -> Iterator[Path]:
    """Yield a temporary directory in `parent`, deleted at the end; the next one of the name deletes a killed one's."""
    with file_lock(parent / name):
        remove_leftovers(parent, re.escape(name))
        folder = temporary_sibling(parent / name, "partial")
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def reset_permissions(directory: Path) -> None:
    """Give every file the permissions of any new file: safetensors lets nobody but the owner read what it writes."""
    # There is no way to read the mask but to set it.
    mask = os.umask(0o022)
    os.umask(mask)
    for path in directory.rglob("*"):
        if path.is_file() and not path.is_symlink():
            path.chmod(0o666 & ~mask)


def make_directory(path: Path) -> None:
    """Create a directory and its parents, durably."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        sync(folder.parent)


def remove_leftovers(directory: Path, names: str) -> None:
    """
    Delete what killed writers of files and directories left behind in `directory`, and nothing else.

    Args:
        directory: Where the targets are; nobody else may be writing there.
        names: Regular expression of the targets' names.
    """
    for path in find_leftovers(directory, names):
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() and not path.is_symlink() else path.unlink()


def find_leftovers(directory: Path, names: str, suffixes: str = "partial|old|complete") -> list[Path]:
    """Return the temporary files and directories that stand in `directory` for targets of these names."""
    pattern = re.compile(rf"\.(?:{names})\.[0-9a-f]{{8}}\.(?:{suffixes})")
    return [path for path in sorted(directory.iterdir()) if pattern.fullmatch(path.name)]


def file_lock(target: Path) -> BaseFileLock:
    """
    Return an inter-process lock for `target`, to use in a `with` statement.

    The lock ends with its process, however that ends. Lock files are kept in the cache of `datasets`, so nothing is
    left beside the target.
    """
    import datasets
    from filelock import FileLock

    locks = Path(datasets.config.HF_DATASETS_CACHE) / "hf_storyend" / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    lock = locks / f"{hashlib.sha256(os.fsencode(target.resolve())).hexdigest()}.lock"
    if lock.is_symlink():
        # Versions of filelock empty the file that it leads to, and others may share the cache.
        raise ValueError(f"{lock} is a link, which this program does not make: delete it.")
    return FileLock(lock)


def temporary_sibling(path: Path, suffix: str) -> Path:
    """Return a new name beside `path`, which `remove_leftovers` knows."""
    # The same directory, hence the same file system: a rename is atomic there.
    return path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.{suffix}")


def sync_tree(directory: Path) -> None:
    """Flush contents to the disk before a rename: a crash must not leave a name without its content."""
    for path in (*directory.rglob("*"), directory):
        sync(path)


def sync(path: Path) -> None:
    """Flush a file's content, or the names in a directory, to the disk."""
    if os.name == "nt" and path.is_dir():
        # Windows can't open directories, nor flush what is open for reading only.
        return
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _swap(new: Path, target: Path) -> None:
    """Rename `new` to `target`; what was there is deleted afterwards, or put back if the rename fails."""
    replaced: list[Path] = []
    try:
        while not _rename_if_free(new, target):
            old = temporary_sibling(target, "old")
            # Another process may just have moved it away.
            with suppress(FileNotFoundError):
                os.rename(target, old)
                replaced.append(old)
    except OSError:
        if replaced and not target.exists():
            os.rename(replaced.pop(), target)
        raise
    finally:
        # The new name must be on the disk before the old content goes.
        sync(target.parent)
        # Deleted last: readers must not wait for the new directory meanwhile.
        for old in replaced:
            shutil.rmtree(old) if old.is_dir() and not old.is_symlink() else old.unlink()


def _rename_if_free(new: Path, target: Path) -> bool:
    """Rename unless the target exists. Checking first would race with other processes."""
    try:
        os.rename(new, target)
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
            raise
        return False
    return True
