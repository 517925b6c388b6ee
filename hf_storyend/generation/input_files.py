"""Stories to end, from JSON Lines, CSV or text of any size, one at a time; errors name the line."""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..data.story_records import validate_sentence
from ..data.text_files import at_line, shorten, stream_lines

# Where a story may stand in a record, and what becomes of an ending that is there already.
STORY_KEYS = ("story", "context", "text")
ENDING, REFERENCE, TRIPLES = "ending", "reference", "triples"
# `sentence1` of ROCStories and `InputSentence1` of the Story Cloze Test; the fifth of ROCStories is its ending.
_SENTENCE_COLUMN = re.compile(r"(input)?sentence_?(\d+)", re.IGNORECASE)
_NUM_ROCSTORIES = 5

Line = tuple[int, str]


@dataclass(frozen=True)
class InputStory:
    """
    A story of a file.

    Args:
        line: Number of the line it starts on, from 1.
        story: One string, or a list of sentences.
        record: What its line of the output repeats: all that was given; an ending is called `reference`.
        triples: Knowledge for this story only.
    """

    line: int
    story: str | list[str]
    record: dict[str, Any] = field(default_factory=dict)
    triples: tuple[tuple[str, str, str], ...] = ()


def stream_stories(
    path: Path, format: str | None = None, digest: Any = None, has_progress: bool = False
) -> Iterator[InputStory]:
    """
    Yield the stories of a file, plain or gzip.

    Args:
        path: The file.
        format: `jsonl`, `csv` or `txt`; default: by its name.
        digest: A hash of `hashlib`, which all lines are added to.
        has_progress: Whether a terminal shows how much of the file was read.
    """
    yield from _READERS[format or file_format(path)](path, _decoded_lines(path, digest, has_progress))


def file_format(path: Path) -> str:
    """Return the format of a file by its name; raise if that doesn't tell."""
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix.removeprefix(".")
    suffix = {"json": "jsonl", "ndjson": "jsonl", "text": "txt"}.get(suffix, suffix)
    if suffix not in _READERS:
        raise ValueError(
            f"{path}: its name doesn't say what is in it. Let it end in .jsonl, .csv or .txt, or give `input_format`."
        )
    return suffix


def scan_stories(path: Path, format: str | None, check: Callable[[str | list[str]], None]) -> tuple[int, str]:
    """Read a whole file, so that nothing in it can be wrong later; return its number of stories and its SHA-256."""
    digest, num_stories = hashlib.sha256(), 0
    for story in stream_stories(path, format, digest, has_progress=True):
        with at_line(path, story.line):
            check(story.story)
        num_stories += 1
    if not num_stories:
        raise ValueError(f"{path} is empty: there is no story in it.")
    return num_stories, digest.hexdigest()


def _decoded_lines(path: Path, digest: Any, has_progress: bool) -> Iterator[Line]:
    for number, line in enumerate(stream_lines(path, has_progress), start=1):
        if digest is not None:
            digest.update(line)
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}, line {number}: not UTF-8 text ({error.reason}).") from error
        if "\0" in text:
            raise ValueError(f"{path}, line {number}: not UTF-8 text (a zero byte).")
        yield number, text


def _text_stories(path: Path, lines: Iterator[Line]) -> Iterator[InputStory]:
    for number, line in _without_blank_lines(path, lines, "every line is a story"):
        with at_line(path, number):
            story = validate_sentence("story", line)
        yield InputStory(number, story, {"story": story})


def _json_stories(path: Path, lines: Iterator[Line]) -> Iterator[InputStory]:
    for number, line in _without_blank_lines(path, lines, 'every line is an object like {"story": "..."}'):
        with at_line(path, number):
            story = _from_record(number, _json_object(line))
        yield story


def _csv_stories(path: Path, lines: Iterator[Line]) -> Iterator[InputStory]:
    rows = _csv_rows(path, lines)
    _, names = next(rows, (0, []))
    with at_line(path, 1):
        columns = _story_columns(names)
    for number, row in rows:
        if not row:
            continue
        with at_line(path, number):
            if len(row) != len(names):
                raise ValueError(
                    f"{len(row)} columns, the header has {len(names)}: does a sentence with a comma lack its "
                    "quotation marks?"
                )
            story = _from_row(number, dict(zip(names, row, strict=True)), columns)
        yield story


_READERS: dict[str, Callable[[Path, Iterator[Line]], Iterator[InputStory]]] = {
    "jsonl": _json_stories,
    "csv": _csv_stories,
    "txt": _text_stories,
}


def _without_blank_lines(path: Path, lines: Iterator[Line], expected: str) -> Iterator[Line]:
    """Yield the lines up to trailing blank ones; endings are found again by the number of their line."""
    blank = 0
    for number, line in lines:
        if not line.strip():
            blank = blank or number
            continue
        if blank:
            raise ValueError(f"{path}, line {blank}: a blank line among the stories; {expected}.")
        yield number, line


def _json_object(line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"column {error.colno}: {error.msg}") from error
    except RecursionError as error:
        raise ValueError(str(error)) from error
    if not isinstance(record, dict):
        raise ValueError(f"a JSON {type(record).__name__} where there should be an object")
    return record


def _from_record(line: int, record: dict[str, Any]) -> InputStory:
    key = next((name for name in STORY_KEYS if name in record), None)
    if key is None:
        raise ValueError(f"no key `story`, `context` or `text`; there is {', '.join(map(repr, record)) or 'none'}")
    value = record[key]
    if isinstance(value, list) and value:
        story: str | list[str] = [
            validate_sentence(f"{key}, sentence {number}", sentence) for number, sentence in enumerate(value, start=1)
        ]
    else:
        story = validate_sentence(key, value)
    return InputStory(line, story, _with_reference(record), _triples(record.get(TRIPLES)))


def _triples(value: Any) -> tuple[tuple[str, str, str], ...]:
    rows = value if isinstance(value, list) else [] if value is None else [value]
    for row in rows:
        if not isinstance(row, list) or len(row) != 3 or not all(isinstance(part, str) for part in row):
            raise ValueError(f"`{TRIPLES}` must be lists of head, relation and tail; got {shorten(repr(row), 80)}")
    return tuple((head, relation, tail) for head, relation, tail in rows)


def _csv_rows(path: Path, lines: Iterator[Line]) -> Iterator[tuple[int, list[str]]]:
    """Yield rows with the number of the line that each starts on; a row may have line breaks inside quotes."""
    reader = csv.reader((line for _, line in lines), strict=True)
    while True:
        start = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise ValueError(
                f"{path}, line {start}: the row that starts here is not valid CSV ({error}); "
                'is a quotation mark missing, or not doubled ("")?'
            ) from error
        yield start, [name.strip() for name in row] if start == 1 else row


def _story_columns(names: list[str]) -> list[str]:
    """Return the column of the story, or those of its sentences in order."""
    for key in STORY_KEYS:
        if key in names:
            return [key]
    numbered = {int(found[2]): name for name in names if (found := _SENTENCE_COLUMN.fullmatch(name))}
    columns = [numbered[number] for number in sorted(numbered)]
    if not columns or sorted(numbered) != list(range(1, len(columns) + 1)):
        raise ValueError(
            f"the columns are {', '.join(map(repr, names)) or 'none'}, but there must be `story`, or `sentence1`, "
            "`sentence2`, ..."
        )
    return columns


def _from_row(line: int, row: dict[str, str], columns: list[str]) -> InputStory:
    record = {name: value for name, value in row.items() if name not in columns}
    if len(columns) == 1 and columns[0] in STORY_KEYS:
        story: str | list[str] = validate_sentence(columns[0], row[columns[0]])
        return InputStory(line, story, _with_reference({"story": story, **record}))
    sentences = [validate_sentence(name, row[name]) for name in columns]
    if len(sentences) == _NUM_ROCSTORIES:
        record = {ENDING: sentences.pop(), **record}
    return InputStory(line, sentences, _with_reference({"context": sentences, **record}))


def _with_reference(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record whose given ending is called `reference`."""
    return {REFERENCE if name == ENDING else name: value for name, value in record.items()}
