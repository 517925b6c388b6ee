"""Rows of a CSV file with the physical line that each starts on; a row of another length is an error."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from .text_files import read_text

Row = tuple[int, list[str]]


def read_csv(path: str | Path) -> tuple[list[str], Iterator[Row]]:
    """The column names, and the rows below them with their line numbers."""
    rows = _without_blank_lines(path, _numbered_rows(path))
    line, header = next(rows, (0, []))
    if not header:
        raise ValueError(f"{path} is empty: there is not even a header.")
    names = [name.strip() for name in header]
    repeated = sorted(name for name, times in Counter(names).items() if times > 1)
    if repeated:
        raise ValueError(f"{path}, line {line}: column `{repeated[0]}` is there twice.")
    return names, _full_rows(path, names, rows)


def _numbered_rows(path: str | Path) -> Iterator[Row]:
    # Line ends are left as they are: inside quotes they belong to the text.
    reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise ValueError(
                f"{path}, line {line}: the row that starts here is not valid CSV ({error}); "
                'is a quotation mark missing, or not doubled ("")?'
            ) from error
        yield line, row


def _without_blank_lines(path: str | Path, rows: Iterator[Row]) -> Iterator[Row]:
    blank_line = 0
    for line, row in rows:
        if len(row) <= 1 and not "".join(row).strip():
            blank_line = blank_line or line
            continue
        if blank_line:
            raise ValueError(f"{path}, line {blank_line}: a blank line among the rows. Take it out.")
        yield line, row


def _full_rows(path: str | Path, names: list[str], rows: Iterator[Row]) -> Iterator[Row]:
    for line, row in rows:
        if len(row) < len(names):
            raise ValueError(
                f"{path}, line {line}: the row has {len(row)} columns, the header {len(names)}: "
                f"column `{names[len(row)]}` is missing. Was the file cut off?"
            )
        if len(row) > len(names):
            raise ValueError(
                f"{path}, line {line}: the row has {len(row)} columns, the header {len(names)}: there is text behind "
                f"column `{names[-1]}`. Does a sentence with a comma lack its quotation marks?"
            )
        yield line, row
