"""Sheets of endings to score as CSV, harmless in spreadsheets and read back unchanged."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from pathlib import Path

from .rubric import METRICS
from .sampling import Item, Sample

ERROR_TYPE = "error_type"
SCORE_COLUMNS = tuple(metric.name for metric in METRICS)
COLUMNS = ("sample", "annotator", "item", "context", "ending", *SCORE_COLUMNS, ERROR_TYPE)

# Spreadsheets run a cell that starts like this; the wide forms count in some locales.
_FORMULA = re.compile("'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")


def safe_cell(text: str) -> str:
    """A text that no spreadsheet takes for a formula: one apostrophe is put in front where there might be one."""
    return f"'{text}" if _FORMULA.match(text) else text


def plain_cell(cell: str) -> str:
    """The text that `safe_cell` was given."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def sheet_name(annotator: int) -> str:
    """What an annotator's sheet is called."""
    return f"sheet_{annotator}.csv"


def write_sheet(
    path: Path, sample: Sample, annotator: int, answers: Mapping[str, Mapping[str, str]] | None = None
) -> None:
    """Write an annotator's sheet: blank, or with `answers`, for each item the text of its columns."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow(COLUMNS)
        for place in sample.order(annotator):
            item = sample.items[place]
            given = (answers or {}).get(item.id, {})
            cells = {**_shown_cells(sample, item), "annotator": str(annotator), **given}
            writer.writerow([safe_cell(cells.get(column, "")) for column in COLUMNS])


def _shown_cells(sample: Sample, item: Item) -> dict[str, str]:
    return {
        "sample": sample.id,
        "item": item.id,
        "context": " ".join(sample.context(item)),
        "ending": item.ending,
    }
