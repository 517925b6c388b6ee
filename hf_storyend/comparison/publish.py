"""What can be published of a comparison: numbers, curves, logs and endings, without a sentence of the corpus."""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Any

from ..evaluation.notes import NOTES
from ..files import atomic_write, make_directory
from ..hub.card import render_published_card
from ..manifest import read_manifest
from .claims import render_claims
from .endings import Corpus, find_corpus_sentences, write_compressed, write_published_endings
from .row_run import LOG, PUBLISHED, RESULT, read_json, read_log

logger = logging.getLogger(__name__)

# Copied as they are: numbers and pictures only.
_COPIED = ("comparison.json", "comparison.md", "comparison.png", "curves.png")
_CURVES = "curves.json"
_PATHS = ("data_dir", "output_dir", "model_name_or_path", "extra_stories")
# Options that say where a run wrote and what it printed, not what it trained.
_NOT_SHOWN = (
    *_PATHS,
    "logging_steps",
    "save_steps",
    "save_total_limit",
    "report_to",
    "run_name",
    "num_sample_endings",
)


def publish_comparison(output_dir: str | Path, export_dir: str | Path, data_dir: str | Path) -> None:
    """
    Write what can be published of the finished rows of a comparison.

    Args:
        output_dir: Directory of the comparison.
        export_dir: Directory to write to; what an earlier export wrote there is replaced.
        data_dir: The prepared stories; none of their sentences is written.

    Raises:
        ValueError: If there is a sentence of the corpus in what was written, or somebody else's README.md there.
    """
    check_export_dir(export_dir)
    source, target = Path(output_dir), Path(export_dir)
    comparison = read_json(source / "comparison.json")
    make_directory(target)
    corpus = Corpus.of(data_dir)
    withheld = {name: _publish_row(source, target, name, corpus) for name in comparison["systems"]}
    for name in _COPIED:
        if (source / name).is_file():
            shutil.copyfile(source / name, target / name)
    curves = {name: _curve(source / "systems" / name / LOG) for name in comparison["systems"]}
    _write_json(curves, target / _CURVES)
    atomic_write(target / "claims.md", render_claims(comparison))
    atomic_write(target / "README.md", _readme(comparison, withheld, len(corpus), _common_options(source, comparison)))


def check_export_dir(directory: str | Path) -> None:
    """Refuse a directory with a README.md that no export wrote."""
    folder = Path(directory)
    if os.path.lexists(folder / "README.md") and not (folder / _CURVES).is_file():
        raise ValueError(
            f"{folder} has a README.md that is not of such an export and would be replaced: name another `export_dir`."
        )


def _publish_row(source: Path, target: Path, name: str, corpus: Corpus) -> int:
    """Write the files of a row; returns how many of its endings stand as digests."""
    run, folder = source / "systems" / name, target / "rows" / name
    make_directory(folder)
    result, measured = read_json(run / RESULT), read_json(run / "metrics.json")
    _write_json(
        {
            "identity": _identity(run),
            "run": _without_paths(measured["run"]),
            "validation": measured["validation"],
            **result,
        },
        folder / "metrics.json",
    )
    write_compressed((run / LOG).read_text(encoding="utf-8"), folder / f"{LOG}.gz")
    shutil.copyfile(run / NOTES, folder / NOTES)
    atomic_write(folder / "card.md", render_published_card(folder))
    with (run / result["settings"]["split"] / "endings.jsonl").open(encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    path = folder / "endings.jsonl.gz"
    withheld = write_published_endings(records, corpus, path)
    if found := find_corpus_sentences(path, corpus):
        path.unlink()
        raise ValueError(f"{path} would have sentences of the corpus, at stories {found[:10]}: it was deleted.")
    logger.info("%s: %d endings, %d of them as digests.", name, len(records), withheld)
    return withheld


def _identity(run: Path) -> str:
    """Return the digest that says what the run was trained on, and how."""
    if (run / PUBLISHED).is_file():
        return read_json(run / PUBLISHED)["identity"]
    return read_manifest(run)["about"]["identity"]


def _without_paths(run: Mapping[str, Any]) -> dict[str, Any]:
    options = dict(run["options"])
    for name in _PATHS:
        options[name] = options[name] and os.path.basename(os.path.normpath(options[name]))
    return {**run, "options": options}


def _curve(log: Path) -> dict[str, list[dict[str, float]]]:
    """Return the learning curve of a run: training and evaluations over the updates."""
    events = read_log(log)
    training = ("step", "epoch", "loss", "ending_loss", "perplexity", "learning_rate", "stories_per_second")
    return {
        "training": [{name: one[name] for name in training if name in one} for one in events if "loss" in one],
        "validation": [
            {
                name.removeprefix("eval_"): value
                for name, value in one.items()
                if name.startswith("eval_") or name in training[:2]
            }
            for one in events
            if "eval_perplexity" in one
        ],
    }


def _common_options(source: Path, comparison: Mapping[str, Any]) -> dict[str, Any]:
    """Return the training options that all rows have in common."""
    runs = [read_json(source / "systems" / name / "metrics.json")["run"]["options"] for name in comparison["systems"]]
    return {
        name: value
        for name, value in runs[0].items()
        if value is not None and name not in _NOT_SHOWN and all(run.get(name) == value for run in runs)
    }


def _readme(
    comparison: Mapping[str, Any], withheld: Mapping[str, int], num_sentences: int, options: Mapping[str, Any]
) -> str:
    rows = comparison["systems"]
    first = next(iter(rows.values()))
    return Template((Path(__file__).parent / "published.md").read_text(encoding="utf-8")).substitute(
        num_rows=len(rows),
        budget=comparison["budget"],
        num_stories=f"{first['num_stories']:,}",
        split=comparison["split"],
        device=first["device"],
        precision=first["precision"],
        versions=", ".join(f"{name} {version}" for name, version in first["versions"].items()),
        withheld=", ".join(f"{name} {count}" for name, count in withheld.items()),
        num_sentences=f"{num_sentences:,}",
        options="\n".join(f"{name}: {json.dumps(value)}" for name, value in options.items()),
    )


def _write_json(content: Any, path: Path) -> None:
    atomic_write(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
