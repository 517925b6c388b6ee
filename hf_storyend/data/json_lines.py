"""JSON Lines with a story a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .text_files import read_text, split_lines

_WANTED = 'every line must be one whole object, {"context": ["...", "..."], "ending": "..."}'


def read_json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The object on each line, with the number of the line, from 1; what the objects hold is for others to check."""
    for number, line in enumerate(split_lines(read_text(path)), start=1):
        yield number, _json_object(path, number, line)


def required(record: dict[str, Any], key: str) -> Any:
    """The value of a key that must be there."""
    if key not in record:
        raise ValueError(f"key `{key}` is missing; there is {', '.join(map(repr, record)) or 'none'}")
    return record[key]


def _json_object(path: Path, number: int, line: str) -> dict[str, Any]:
    if not line.strip():
        raise ValueError(f"{path}, line {number}: a blank line among the stories; {_WANTED}.")
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}, line {number}, column {error.colno}: {error.msg}; {_WANTED}.") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}, line {number}: {error}; {_WANTED}.") from error
    if not isinstance(record, dict):
        raise ValueError(f"{path}, line {number}: a JSON {type(record).__name__}; {_WANTED}.")
    return record
