"""The file formats that stories come in, and how one is told from another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from .csv_rows import read_csv
from .embedded import StoryRecord
from .json_lines import read_json_lines, required
from .paired_files import read_paired_files
from .plain_text import read_plain_text
from .story_records import (
    CONTEXT_AND_ENDING,
    ROCSTORIES,
    STORY_CLOZE,
    ClozeRecord,
    ColumnLayout,
    Field,
    choose_layout,
    cloze_from_fields,
)
from .text_files import at_line


def read_stories(path: Path, format: str | None = None) -> list[StoryRecord]:
    """All stories of one file; the format is told by the ending of its name, a table's by its header too."""
    suffix = story_suffix(path)
    if format is None and suffix not in STORY_SUFFIXES:
        raise ValueError(
            f"{path}: what is in a file called {path.name!r} is not known. Say it with `format`, one of "
            f"{', '.join(STORY_FORMATS)}; or let its name end in {', '.join(STORY_SUFFIXES)}, or one of these and .gz."
        )
    reader = STORY_SUFFIXES[suffix] if format is None else STORY_FORMATS[checked_format(format)]
    stories = list(reader(path))
    if not stories:
        raise ValueError(f"{path} is empty: there is no story in it.")
    return stories


def read_cloze_questions(path: Path) -> list[ClozeRecord]:
    """All questions of a Story Cloze CSV file."""
    questions = []
    for line, _, fields in _table_fields(path, [STORY_CLOZE]):
        with at_line(path, line):
            questions.append(cloze_from_fields(fields))
    if not questions:
        raise ValueError(f"{path} is empty: there is no question in it.")
    return questions


def checked_format(format: str) -> str:
    """The name of a format, if there is such a one."""
    if format not in STORY_FORMATS:
        raise ValueError(f"`format` must be one of {', '.join(STORY_FORMATS)}; got {format!r}.")
    return format


def story_suffix(path: Path) -> str:
    """How a file's name ends, apart from `.gz`: `.jsonl` of `train.jsonl.gz`."""
    return Path(path.name.removesuffix(".gz")).suffix.lower()


def _read_table(path: Path, layouts: Sequence[ColumnLayout]) -> Iterator[StoryRecord]:
    for line, layout, fields in _table_fields(path, layouts):
        with at_line(path, line):
            story = layout.story(fields)
        yield story


def _table_fields(path: Path, layouts: Sequence[ColumnLayout]) -> Iterator[tuple[int, ColumnLayout, list[Field]]]:
    names, rows = read_csv(path)
    with at_line(path, 1):
        layout, columns = choose_layout(names, layouts)
    positions = [names.index(column) for column in columns]
    for line, row in rows:
        yield line, layout, [(names[position], row[position]) for position in positions]


def _read_json_lines(path: Path) -> Iterator[StoryRecord]:
    for number, record in read_json_lines(path):
        with at_line(path, number):
            story = CONTEXT_AND_ENDING.story([(key, required(record, key)) for key in CONTEXT_AND_ENDING.columns])
        yield story


StoryReader = Callable[[Path], Iterator[StoryRecord]]

STORY_FORMATS: dict[str, StoryReader] = {
    "rocstories": partial(_read_table, layouts=[ROCSTORIES]),
    "storycloze": partial(_read_table, layouts=[STORY_CLOZE]),
    "post-response": read_paired_files,
    "jsonl": _read_json_lines,
    "text": read_plain_text,
}

STORY_SUFFIXES: dict[str, StoryReader] = {
    ".csv": partial(_read_table, layouts=[ROCSTORIES, STORY_CLOZE]),
    ".jsonl": _read_json_lines,
    ".json": _read_json_lines,
    ".post": read_paired_files,
    ".response": read_paired_files,
    ".txt": read_plain_text,
}
