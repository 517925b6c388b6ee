"""What an evaluation reads: a split of stories, and files with a system's endings for it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset, DatasetDict

from ..data.stories import load_stories
from ..data.story_files import canonical_split
from ..data.text_files import at_line, read_text
from .text_metrics import tokenize

_LINE_END = re.compile(r"\r\n|\r|\n")


def load_split(data_dir: str | Path, split: str = "test") -> tuple[Dataset, list[str] | None]:
    """
    Load a split of stories.

    Args:
        data_dir: Anything `load_stories` reads, or a directory that `storyend prepare` has written.
        split: Name of the split.

    Returns:
        The stories, and the endings of the split `train` if there is one beside it.
    """
    directory, name = Path(data_dir).expanduser(), canonical_split(split)
    if not directory.is_dir():
        return load_stories(str(data_dir), split=split)[name], None
    stories = _load_directory(directory)
    if name not in stories:
        raise ValueError(f"{data_dir} has no split `{split}`; there is {', '.join(stories)}.")
    return stories[name], list(stories["train"]["ending"]) if "train" in stories else None


def load_training_stories(data_dir: str | Path) -> Dataset | None:
    """Return the split `train` of a directory that `load_split` reads; None if it has none."""
    directory = Path(data_dir).expanduser()
    return _load_directory(directory).get("train") if directory.is_dir() else None


def _load_directory(directory: Path) -> DatasetDict:
    """Load all splits of a directory of stories, or of one that `storyend prepare` has written."""
    prepared = directory / "stories"
    return load_stories(prepared if prepared.is_dir() else directory)


def first_stories(stories: Dataset, max_stories: int | None) -> Dataset:
    """Return the first N stories, or all."""
    return stories if max_stories is None else stories.select(range(min(max_stories, len(stories))))


def read_endings(path: str | Path, stories: Dataset, max_stories: int | None = None) -> list[dict[str, Any]]:
    """
    Read a system's endings for these stories, in the same order.

    Args:
        path: A text file with an ending a line, or JSON Lines with `ending` and optionally `context`, which must then
            be that of the story. An ending may be empty.
        stories: The stories.
        max_stories: Read only the first N endings.

    Returns:
        A record for each story, with at least `ending`.
    """
    lines = _LINE_END.split(read_text(path))
    if lines[-1] == "":
        lines.pop()
    if Path(path).name.removesuffix(".gz").endswith((".jsonl", ".ndjson")):
        records = [_json_record(path, number, line) for number, line in enumerate(lines, start=1)]
    else:
        records = [{"ending": line.strip()} for line in lines]
    records = records[:max_stories]
    if len(records) != len(stories):
        raise ValueError(f"{path} has {len(records)} endings for {len(stories)} stories: one for each is needed.")
    for number, (record, context) in enumerate(zip(records, stories["context"], strict=True), start=1):
        with at_line(path, number):
            _check_context(record, context)
    return records


def _json_record(path: str | Path, number: int, line: str) -> dict[str, Any]:
    with at_line(path, number):
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"column {error.colno}: not JSON ({error.msg})") from error
        except RecursionError as error:
            raise ValueError(f"JSON that is nested too deeply ({error})") from error
        if not isinstance(record, dict) or not isinstance(record.get("ending"), str):
            raise ValueError("must be an object with `ending`, a string")
        return record


def _check_context(record: dict[str, Any], context: Sequence[str]) -> None:
    if "context" not in record:
        return
    own = record["context"]
    if not isinstance(own, list) or list(map(_comparable, own)) != list(map(_comparable, context)):
        raise ValueError(
            f"`context` is not that of this story, which starts {context[0]!r}: give endings of the same stories, "
            "in the same order"
        )


def _comparable(sentence: Any) -> list[str] | None:
    return tokenize(sentence) if isinstance(sentence, str) else None
