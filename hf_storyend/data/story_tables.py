"""Stories out of the tables of the `datasets` library: loaded already, saved on disk, or on the Hub."""

from __future__ import annotations

from pathlib import Path

import datasets
from datasets import Dataset, DatasetDict
from pyarrow import ArrowException

from .embedded import StoryRecord
from .story_records import CONTEXT_AND_ENDING, ROCSTORIES, STORY_CLOZE, WHOLE_TEXT, choose_layout

_LAYOUTS = (CONTEXT_AND_ENDING, ROCSTORIES, STORY_CLOZE, WHOLE_TEXT)
_SAVED_MARKS = ("dataset_dict.json", "state.json")
_ARROW_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"


def stories_of_table(table: Dataset, name: str, format: str | None = None) -> list[StoryRecord]:
    """All stories of one split; `name` is what errors call it."""
    layouts = [layout for layout in _LAYOUTS if format in (None, layout.format)]
    if not layouts:
        raise ValueError(f"`format` {format!r} is one of files; {name} is a table already.")
    try:
        layout, columns = choose_layout(table.column_names, layouts)
    except ValueError as error:
        raise ValueError(f"{name}: {error}.") from error
    stories: list[StoryRecord] = []
    for batch in table.with_format(None).select_columns(columns).iter(batch_size=1_000):
        for values in zip(*(batch[column] for column in columns), strict=True):
            try:
                stories.append(layout.story(list(zip(columns, values, strict=True))))
            except ValueError as error:
                raise ValueError(f"{name}, row {len(stories)}: {error}.") from error
    if not stories:
        raise ValueError(f"{name} is empty: there is no story in it.")
    return stories


def is_saved_dataset(directory: Path) -> bool:
    """Whether `save_to_disk` has written the directory."""
    return any((directory / mark).is_file() for mark in _SAVED_MARKS)


def load_saved_dataset(directory: Path) -> Dataset | DatasetDict:
    """What `save_to_disk` has written, if it is whole."""
    for file in sorted(directory.rglob("*.arrow")):
        # The reader takes a file that was cut between two batches for a shorter one.
        if not is_whole(file):
            raise ValueError(f"{file} is truncated: the mark of its end is missing. Save the dataset once more.")
    try:
        tables = datasets.load_from_disk(str(directory))
        for table in tables.values() if isinstance(tables, DatasetDict) else [tables]:
            # Arrow believes what a file says of itself: offsets that point elsewhere would end the process.
            table.data.table.validate(full=True)
        return tables
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError, ArrowException) as error:
        raise ValueError(f"{directory} is not a whole dataset of `save_to_disk`: {error}.") from error


def load_hub_dataset(name: str) -> DatasetDict:
    """All splits of a dataset on the Hub."""
    try:
        return datasets.load_dataset(name)
    except (FileNotFoundError, ConnectionError) as error:
        raise ValueError(f"{name!r} is no file or directory, nor a dataset that the Hub gives us: {error}") from error


def is_whole(arrow_file: Path) -> bool:
    """Whether the file ends as its writer ends it."""
    with arrow_file.open("rb") as stream:
        stream.seek(max(0, arrow_file.stat().st_size - len(_ARROW_END)))
        return stream.read() == _ARROW_END
