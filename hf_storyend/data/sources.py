"""What prepared data were made of, by names without paths, from the report of `prepare`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from .options import EMBEDDED

# The package's stories as a dataset.
EMBEDDED_DATASET = "hf_storyend-embedded"


def data_sources(directory: str | Path) -> dict[str, Any] | None:
    """
    Return what a prepared directory was made of, None if it does not say.

    Returns:
        `stories` ("embedded", the name of a file or directory, or a dataset on the Hub), `num_stories` of each split,
        `conceptnet`, the names of the knowledge files, and `glove`, that of the word vectors, or None.
    """
    try:
        report = json.loads((Path(directory) / "report.json").read_text(encoding="utf-8"))
        options, splits, inputs = report["options"], report["stories"], report["inputs"]
        return {
            "stories": _name_of_stories(str(options["stories"]), inputs),
            "num_stories": {str(name): int(split["stories"]) for name, split in splits.items()},
            "conceptnet": [os.path.basename(name) for name in options["conceptnet"]],
            "glove": None if options["glove"] is None else os.path.basename(options["glove"]),
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        # No report, or one of an earlier version.
        return None


def dataset_name(data_dir: str) -> str:
    """Return what the stories of a prepared directory, of a file or of the Hub are called in results."""
    if data_dir == EMBEDDED:
        return EMBEDDED_DATASET
    sources = data_sources(data_dir)
    name = Path(data_dir).name if sources is None else sources["stories"]
    if name == EMBEDDED:
        return EMBEDDED_DATASET
    # `stories.jsonl.gz` has two suffixes.
    return name if "/" in name else name.partition(".")[0]


def _name_of_stories(stories: str, inputs: dict[str, str]) -> str:
    """Return the last part of a path; a dataset on the Hub keeps its owner."""
    path = os.path.normpath(os.path.expanduser(stories))
    is_local = any(name == path or name.startswith(path + os.sep) for name in map(os.path.normpath, inputs))
    return os.path.basename(path) if is_local else stories
