"""Stories in tables of `datasets`: in memory, saved to disk, or on the Hub."""

from __future__ import annotations

from pathlib import Path

import datasets
from datasets import Dataset, DatasetDict
from pyarrow import ArrowException

from .story_records import CONTEXT_AND_ENDING, ROCSTORIES, STORY_CLOZE, WHOLE_TEXT, StoryRecord, choose_layout

_LAYOUTS = (CONTEXT_AND_ENDING, ROCSTORIES, STORY_CLOZE, WHOLE_TEXT)
_SAVED_DATASET_FILES = ("dataset_dict.json", "state.json")
_ARROW_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"


def read_story_table(table: Dataset, name: str, format: str | None = None) -> list[StoryRecord]:
    """
    Return all stories of a table.

    Args:
        table: Table with the columns of one of the layouts.
        name: Name of the table in errors.
        format: Format of the layout to use, if the columns fit several.
    """
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
                stories.append(layout.build(list(zip(columns, values, strict=True))))
            except ValueError as error:
                raise ValueError(f"{name}, row {len(stories)}: {error}.") from error
    if not stories:
        raise ValueError(f"{name} is empty: there is no story in it.")
    return stories


def is_saved_dataset(directory: Path) -> bool:
    """Return whether a directory was written by `save_to_disk`."""
    return any((directory / name).is_file() for name in _SAVED_DATASET_FILES)


def load_saved_dataset(directory: Path) -> Dataset | DatasetDict:
    """Load what `save_to_disk` has written; raise if it is truncated or corrupted."""
    for file in sorted(directory.rglob("*.arrow")):
        # The reader takes a file that was truncated between two batches for a shorter one.
        if not is_complete_arrow_file(file):
            raise ValueError(f"{file} is truncated: the mark of its end is missing. Save the dataset again.")
    try:
        tables = datasets.load_from_disk(str(directory))
        for table in tables.values() if isinstance(tables, DatasetDict) else [tables]:
            # Arrow trusts the offsets in a file; wrong ones would crash the process.
            table.data.table.validate(full=True)
        return tables
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError, ArrowException) as error:
        raise ValueError(f"{directory} is not a whole dataset of `save_to_disk`: {error}.") from error


def load_hub_dataset(name: str) -> DatasetDict:
    """Load all splits of a dataset on the Hub."""
    try:
        return datasets.load_dataset(name)
    except (FileNotFoundError, ConnectionError) as error:
        raise ValueError(
            f"{name!r} is no file or directory, and no dataset that the Hub can deliver: {error}"
        ) from error


def is_complete_arrow_file(path: Path) -> bool:
    """Return whether an Arrow file ends with the mark that its writer puts there last."""
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - len(_ARROW_END)))
        return stream.read() == _ARROW_END
