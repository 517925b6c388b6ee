"""Directories that are complete or not there: written aside, then moved into place."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

REPORT = "report.json"


def file_digest(path: Path) -> str:
    """SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def input_digests(paths: Sequence[Path]) -> dict[str, str]:
    """Digests of files, and of all files in directories, by path."""
    files = [file for path in paths for file in (sorted(path.rglob("*")) if path.is_dir() else [path])]
    return {str(file): file_digest(file) for file in files if file.is_file()}


def fingerprint(content: Any) -> str:
    """One string for anything JSON can hold; equal for equal content."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def read_report(directory: Path) -> dict[str, Any] | None:
    """The report of a prepared directory, or None if there is none."""
    path = directory / REPORT
    if not path.is_file():
        return None
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} can't be read: {error}. Remove the directory and prepare again.") from error
    if not isinstance(report, dict):
        raise ValueError(f"{path} is not a report. Remove the directory and prepare again.")
    return report


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
        _swap(aside, target)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _swap(new: Path, target: Path) -> None:
    while True:
        try:
            # Fails where something stands, another process's result included.
            os.rename(new, target)
            return
        except OSError:
            if not target.exists():
                raise
        old = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.old")
        # If another process has just taken it away, the place is free.
        with suppress(FileNotFoundError):
            os.rename(target, old)
            shutil.rmtree(old) if old.is_dir() else old.unlink()
