"""
Rows that another machine has trained, measured and published, as finished rows of a comparison, without their weights.

Machines that share no directory make a comparison together in this way: each exports its rows, and one that has all
exports writes the table.
"""

from __future__ import annotations

import gzip
import json
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..evaluation.loading import load_split
from ..evaluation.notes import NOTES
from ..files import atomic_directory, file_digest, make_directory
from .endings import Corpus
from .row_run import LOG, PUBLISHED, RESULT, RowRun, read_json

logger = logging.getLogger(__name__)


def restore_rows(runs: Iterable[RowRun], published: Path, data_dir: Path) -> None:
    """
    Restore the published rows that have no run in the comparison's directory.

    Args:
        runs: The rows of the comparison.
        published: What `publish_comparison` has written.
        data_dir: The stories, as `storyend prepare` wrote them: their sentences are not published.

    Raises:
        ValueError: If a row was trained on other data or with other options.
    """
    if not (published / "rows").is_dir():
        raise ValueError(f"{published} has no directory `rows`: no comparison was published there.")
    corpus: Corpus | None = None
    for run in runs:
        folder = published / "rows" / run.row.name
        if not folder.is_dir() or run.has_files():
            continue
        corpus = corpus or Corpus.of(data_dir)
        _restore(run, folder, corpus, data_dir)
        logger.info("%s: taken from %s.", run.row.name, folder)


def _restore(run: RowRun, folder: Path, corpus: Corpus, data_dir: Path) -> None:
    published = read_json(folder / "metrics.json")
    run.check_origin(folder, published["run"]["options"], published.get("identity"))
    records = _records(folder, published["settings"]["split"], corpus, data_dir)
    with atomic_directory(run.directory) as written:
        endings = written / published["settings"]["split"] / "endings.jsonl"
        make_directory(endings.parent)
        endings.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in records), encoding="utf-8")
        (written / LOG).write_bytes(gzip.decompress((folder / f"{LOG}.gz").read_bytes()))
        (written / NOTES).write_bytes((folder / NOTES).read_bytes())
        of_run = {name: published.pop(name) for name in ("run", "validation")}
        marker = {"identity": published.pop("identity")}
        result = {**published, "endings": file_digest(endings)}
        for name, content in (("metrics.json", of_run), (PUBLISHED, marker), (RESULT, result)):
            text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
            (written / name).write_text(text, encoding="utf-8")


def _records(folder: Path, split: str, corpus: Corpus, data_dir: Path) -> list[dict[str, Any]]:
    """Return the endings as an evaluation writes them: with their stories, whose sentences are not published."""
    with gzip.open(folder / "endings.jsonl.gz", "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    stories, _ = load_split(data_dir, split)
    return [
        {
            "context": story["context"],
            "ending": corpus.restore(record),
            "reference": story["ending"],
            "loss": record["loss"],
            "num_words": record["num_words"],
        }
        for record, story in zip(records, stories.select(range(len(records))), strict=True)
    ]
