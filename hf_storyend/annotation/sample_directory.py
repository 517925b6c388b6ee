"""A sample on disk: what annotators get in one folder, the key beside it."""

from __future__ import annotations

from pathlib import Path

from ..directories import written_aside
from .page import guidelines, render_page
from .sampling import Sample, write_key
from .sheets import sheet_name, write_sheet

KEY = "key.json"
SHEETS = "sheets"


def write_sample(sample: Sample, output: Path) -> None:
    """
    Write `key.json`, and for annotators `sheets/` with a CSV sheet each, `annotate.html` and `guidelines.md`. A
    directory that holds anything is left alone: scores may be in it.
    """
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise ValueError(f"{output} is there already, maybe with scores in it. Name another output directory.")
    with written_aside(output) as folder:
        write_key(sample, folder / KEY)
        sheets = folder / SHEETS
        sheets.mkdir()
        for annotator in range(1, sample.num_annotators + 1):
            write_sheet(sheets / sheet_name(annotator), sample, annotator)
        (sheets / "annotate.html").write_text(render_page(sample), encoding="utf-8")
        (sheets / "guidelines.md").write_text(guidelines(), encoding="utf-8")
