"""What an evaluation reads: the stories of a split, and endings that systems wrote."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset

from ..data.split_files import canonical_split
from ..data.stories import load_stories
from ..data.text_files import at_line, read_text
from .texts import words_of

_LINE_END = re.compile(r"\r\n|\r|\n")


def load_split(data: str, split: str = "test") -> tuple[Dataset, list[str] | None]:
    """
    The stories of a split and, where there is a split `train` beside it, the endings of that one. `data` is what
    `load_stories` takes, or a directory that `storyend prepare` wrote.
    """
    path = Path(data).expanduser()
    if not path.is_dir():
        return load_stories(data, split=split)[canonical_split(split)], None
    prepared = path / "stories"
    stories = load_stories(prepared if prepared.is_dir() else path)
    name = canonical_split(split)
    if name not in stories:
        raise ValueError(f"{data} has no split `{split}`; there is {', '.join(stories)}.")
    return stories[name], list(stories["train"]["ending"]) if "train" in stories else None


def first_stories(stories: Dataset, max_stories: int | None) -> Dataset:
    """The first so many rows, or all."""
    return stories if max_stories is None else stories.select(range(min(max_stories, len(stories))))


def read_endings(path: str | Path, stories: Dataset, max_stories: int | None = None) -> list[dict[str, Any]]:
    """
    The endings of a system for these stories, in their order: a text file with one a line, or JSON Lines with
    `ending` and, if it is there, `context`, which must then be that of the story. An empty ending is one, too. Where
    the stories are only the first `max_stories`, the file may have all.
    """
    lines = _LINE_END.split(read_text(path))
    if lines[-1] == "":
        lines.pop()
    is_json = Path(path).name.removesuffix(".gz").endswith((".jsonl", ".ndjson"))
    records = [_record(path, number, line) for number, line in enumerate(lines, 1)] if is_json else _plain(lines)
    records = records[:max_stories]
    if len(records) != len(stories):
        raise ValueError(f"{path} has {len(records)} endings for {len(stories)} stories: one for each is needed.")
    for number, (record, context) in enumerate(zip(records, stories["context"], strict=True), start=1):
        with at_line(path, number):
            _check_context(record, context)
    return records


def _plain(lines: Sequence[str]) -> list[dict[str, Any]]:
    return [{"ending": line.strip()} for line in lines]


def _record(path: str | Path, number: int, line: str) -> dict[str, Any]:
    with at_line(path, number):
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"column {error.colno}: not JSON ({error.msg})") from error
        except RecursionError as error:
            raise ValueError(f"not JSON that anyone wrote ({error})") from error
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
    return words_of(sentence) if isinstance(sentence, str) else None
