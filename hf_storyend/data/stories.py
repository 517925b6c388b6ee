"""`load_stories`: stories from files, directories, `datasets`, the Hub or this package, as one `DatasetDict`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from datasets import Dataset, DatasetDict, Features, List, Value

from .embedded import embedded_stories
from .options import EMBEDDED
from .story_files import (
    STORY_SUFFIXES,
    canonical_split,
    find_split_files,
    post_path_of,
    read_cloze_questions,
    read_stories,
    story_suffix,
    validate_format,
)
from .story_records import StoryRecord
from .story_tables import is_saved_dataset, load_hub_dataset, load_saved_dataset, read_story_table

STORY_FEATURES = Features({"context": List(Value("string")), "ending": Value("string")})
CLOZE_FEATURES = Features(
    {"context": List(Value("string")), "ending1": Value("string"), "ending2": Value("string"), "right": Value("int64")}
)

Files = str | Path | Sequence[str | Path]
Reader = Callable[[], list[StoryRecord]]

_HUB_NAME = re.compile(r"\w[\w.-]*(/[\w.-]+)?")


def load_stories(
    source: Files | Mapping[str, Files] | Dataset | DatasetDict,
    *,
    format: str | None = None,
    split: str | None = None,
) -> DatasetDict:
    """
    Load stories as a `DatasetDict` with the features `context: list[string]` and `ending: string`.

    Nothing is skipped: what is not a story raises a `ValueError` that names file, line and column. Sentences are kept
    as written, without surrounding white space.

    Args:
        source: Source of the stories:
            - a file, or a list of files: CSV of ROCStories or of the Story Cloze Test (with the right ending), JSON
              Lines (`{"context": ["...", "..."], "ending": "..."}`), a pair `X.post` (sentences separated by tabs)
              and `X.response`, or plain text with a story per line or per paragraph; all of them plain or gzip;
            - a dict from splits to files: `{"train": ["spring.csv", "winter.csv"], "test": "test.jsonl"}`;
            - a directory with files named after splits (`train.csv`, `val.jsonl`, `test.post` ...), or one written by
              `save_to_disk` of `datasets`;
            - the name of a dataset on the Hub, or a `Dataset` or `DatasetDict`, with the columns `context` and
              `ending`, those of one of the CSV files, or `text`;
            - `"embedded"`: the corpus that comes with this package.
        format: Format of the files, if names and headers do not tell: `rocstories`, `storycloze`, `post-response`,
            `jsonl` or `text`.
        split: The only split to load. A source without splits becomes this split, or else `train`. The names `val`,
            `valid` and `dev` become `validation`.

    Returns:
        `DatasetDict`: The splits of the source. `split_stories` divides a single one.
    """
    if format is not None:
        validate_format(format)
    if split is not None:
        split = canonical_split(split)
    readers = _find_readers(source, format, split or "train")
    if split is not None and split not in readers:
        raise ValueError(f"`split` {split!r} is not there; there is {', '.join(readers)}.")
    chosen = readers if split is None else {split: readers[split]}
    return DatasetDict({name: Dataset.from_list(read(), features=STORY_FEATURES) for name, read in chosen.items()})


def load_story_cloze(path: str | Path) -> Dataset:
    """Load a Story Cloze CSV file as questions: `context`, `ending1`, `ending2`, and `right`, which is 1 or 2."""
    return Dataset.from_list(read_cloze_questions(Path(path)), features=CLOZE_FEATURES)


def _find_readers(source: Any, format: str | None, only_split: str) -> dict[str, Reader]:
    """Return a reader for every split of the source; a source without splits is `only_split`."""
    if isinstance(source, (Dataset, DatasetDict)):
        return _table_readers(source, "the dataset", format, only_split)
    if isinstance(source, Mapping):
        return _file_readers(source, format)
    if isinstance(source, str) and source == EMBEDDED:
        return {only_split: embedded_stories}
    if isinstance(source, Sequence) and not isinstance(source, str):
        return _file_readers({only_split: source}, format)
    if not isinstance(source, (str, Path)):
        raise ValueError(f"`source` must be a path, a name, a list, a dict or a dataset; got {type(source).__name__}.")
    path = Path(source).expanduser()
    if path.is_dir():
        if is_saved_dataset(path):
            return _table_readers(load_saved_dataset(path), str(path), format, only_split)
        return _file_readers(find_split_files(path), format)
    if isinstance(source, str) and not path.exists() and _is_hub_name(source) and format != "post-response":
        return _table_readers(load_hub_dataset(source), source, format, only_split)
    return _file_readers({only_split: path}, format)


def _file_readers(files: Mapping[str, Files], format: str | None) -> dict[str, Reader]:
    if not files:
        raise ValueError("`source` names no files.")
    return _by_canonical_name({split: partial(_read_files, of_split, format) for split, of_split in files.items()})


def _read_files(files: Files, format: str | None) -> list[StoryRecord]:
    named = [files] if isinstance(files, (str, Path)) else files
    # Both files of a pair may be named.
    paths = dict.fromkeys(post_path_of(Path(file).expanduser()) for file in named)
    if not paths:
        raise ValueError("`source` has an empty list of files.")
    return [story for path in paths for story in read_stories(path, format)]


def _table_readers(tables: Dataset | DatasetDict, name: str, format: str | None, only_split: str) -> dict[str, Reader]:
    if isinstance(tables, Dataset):
        return {only_split: partial(read_story_table, tables, name, format)}
    if not tables:
        raise ValueError(f"{name} is empty: it has no split.")
    return _by_canonical_name(
        {split: partial(read_story_table, table, f"{name}, split {split}", format) for split, table in tables.items()}
    )


def _by_canonical_name(readers: Mapping[str, Reader]) -> dict[str, Reader]:
    names = [canonical_split(split) for split in readers]
    if len(set(names)) < len(names):
        raise ValueError(f"Two of the splits {', '.join(readers)} mean the same: val, valid and dev are validation.")
    return dict(zip(names, readers.values(), strict=True))


def _is_hub_name(source: str) -> bool:
    return _HUB_NAME.fullmatch(source) is not None and story_suffix(Path(source)) not in STORY_SUFFIXES
