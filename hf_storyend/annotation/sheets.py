"""What annotators get: a CSV sheet each, a web page to fill it in, and guidelines. None of them names a system."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from string import Template
from typing import Any

from markdown_it import MarkdownIt

from ..files import exclusive_directory
from ..html_page import content_security_policy, script_safe_json
from .rubric import ERROR_TYPES, METRICS
from .sampling import Item, Sample, write_key

ERROR_TYPE = "error_type"
SCORE_COLUMNS = tuple(metric.name for metric in METRICS)
COLUMNS = ("sample", "annotator", "item", "context", "ending", *SCORE_COLUMNS, ERROR_TYPE)

# Spreadsheets run a cell that starts like this as a formula; in some locales the full-width forms, too.
_FORMULA = re.compile("'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_DIRECTORY = Path(__file__).parent


def write_sample(sample: Sample, output_dir: Path) -> None:
    """
    Write `key.json` and, for annotators, `sheets/` with a CSV sheet each, `annotate.html` and `guidelines.md`.

    A directory that is not empty is refused: it may hold scores.
    """
    if output_dir.exists() and (not output_dir.is_dir() or any(output_dir.iterdir())):
        raise ValueError(f"{output_dir} is there already, maybe with scores in it. Name another output directory.")
    with exclusive_directory(output_dir) as directory:
        write_key(sample, directory / "key.json")
        sheets = directory / "sheets"
        sheets.mkdir()
        for annotator in range(1, sample.num_annotators + 1):
            write_sheet(sheets / sheet_name(annotator), sample, annotator)
        (sheets / "annotate.html").write_text(render_page(sample), encoding="utf-8")
        (sheets / "guidelines.md").write_text(_package_file("guidelines.md"), encoding="utf-8")


def sheet_name(annotator: int) -> str:
    """Return the file name of an annotator's sheet."""
    return f"sheet_{annotator}.csv"


def write_sheet(
    path: Path, sample: Sample, annotator: int, answers: Mapping[str, Mapping[str, str]] | None = None
) -> None:
    """
    Write an annotator's sheet.

    Args:
        path: File to write.
        sample: The sample.
        annotator: Number of the annotator, from 1.
        answers: Columns to fill in by the id of the item; default: a blank sheet.
    """
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow(COLUMNS)
        for index in sample.order(annotator):
            item = sample.items[index]
            answer = (answers or {}).get(item.id, {})
            cells = {**_item_cells(sample, item), "annotator": str(annotator), **answer}
            writer.writerow([escape_formula(cells.get(column, "")) for column in COLUMNS])


def _item_cells(sample: Sample, item: Item) -> dict[str, str]:
    return {
        "sample": sample.id,
        "item": item.id,
        "context": " ".join(sample.context(item)),
        "ending": item.ending,
    }


def escape_formula(text: str) -> str:
    """Prefix an apostrophe to text that a spreadsheet would run as a formula."""
    return f"'{text}" if _FORMULA.match(text) else text


def unescape_formula(cell: str) -> str:
    """Invert `escape_formula`."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def render_page(sample: Sample) -> str:
    """Return the self-contained HTML page that annotators score in."""
    style, script = _package_file("page.css"), _package_file("page.js")
    return Template(_package_file("page.html")).substitute(
        policy=content_security_policy(style, script),
        style=style,
        script=script,
        guidelines=MarkdownIt("commonmark").enable("table").render(_package_file("guidelines.md")),
        data=script_safe_json(_page_data(sample)),
    )


def _page_data(sample: Sample) -> dict[str, Any]:
    return {
        "sample": sample.id,
        "metrics": [asdict(metric) for metric in METRICS],
        "errors": [asdict(error_type) for error_type in ERROR_TYPES],
        "stories": [story.context for story in sample.stories],
        "items": [{"id": item.id, "story": item.story, "ending": item.ending} for item in sample.items],
        "orders": [sample.order(annotator) for annotator in range(1, sample.num_annotators + 1)],
    }


def _package_file(name: str) -> str:
    return (_DIRECTORY / name).read_text(encoding="utf-8")
