"""What a prepared directory was made from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..directories import file_digest

REPORT = "report.json"


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
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} can't be read: {error}. Remove the directory and prepare again.") from error
    if not isinstance(report, dict):
        raise ValueError(f"{path} is not a report. Remove the directory and prepare again.")
    return report
