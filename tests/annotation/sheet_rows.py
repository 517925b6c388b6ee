"""Sheets as a spreadsheet would see them."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

Rows = list[dict[str, str]]


def rows_of(path: Path) -> Rows:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def rewrite(path: Path, change: Callable[[Rows], Rows | None]) -> None:
    """Change the rows of a sheet by hand, as an annotator might."""
    rows = rows_of(path)
    changed = change(rows)
    rows = rows if changed is None else changed
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
