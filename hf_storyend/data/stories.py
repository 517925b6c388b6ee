"""Stories from anywhere - files, directories, `datasets`, the Hub, this package - as one `DatasetDict`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from datasets import Dataset, DatasetDict, Features, List, Value

from ..knowledge import Edge, build_knowledge_table
from ..modeling import IncrementalEncoderTokenizer
from .story_files import (
    STORY_SUFFIXES,
    StoryRecord,
    canonical_split,
    checked_format,
    find_split_files,
    is_saved_dataset,
    load_hub_dataset,
    load_saved_dataset,
    post_of_pair,
    read_cloze_questions,
    read_stories,
    stories_of_table,
    story_suffix,
)
from .vocabulary import build_vocabulary


def embedded_stories() -> list[StoryRecord]:
    """All stories, in a fixed, shuffled order."""
    text = files("hf_storyend.assets").joinpath("stories.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.strip().split("\n")]


def embedded_triples() -> list[tuple[str, str, str]]:
    """Commonsense triples: head, relation, tail, all lemmas."""
    text = files("hf_storyend.assets").joinpath("triples.tsv").read_text(encoding="utf-8")
    rows = (line.split("\t") for line in text.strip().split("\n"))
    return [(head, relation, tail) for head, relation, tail in rows]


def embedded_tokenizer() -> IncrementalEncoderTokenizer:
    """A tokenizer for the embedded stories: their words, and the triples that those retrieve."""
    sentences = [sentence for story in embedded_stories() for sentence in (*story["context"], story["ending"])]
    vocabulary = build_vocabulary(sentences)
    tokenizer = IncrementalEncoderTokenizer(vocab=vocabulary.ids)
    tokenizer.word_forms = vocabulary.word_forms
    tokenizer.knowledge = build_knowledge_table(embedded_edges(), vocabulary.ids, counts=vocabulary.counts)
    return tokenizer


def embedded_edges() -> Iterator[Edge]:
    """The triples as edges of weight 1, for building a knowledge table."""
    for head, relation, tail in embedded_triples():
        yield Edge(head, relation, tail, 1.0, None, None)


EMBEDDED = "embedded"
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

    Nothing is skipped: what can't be read as a story is a `ValueError` that names the file, the line and the column.
    Sentences stay as they are written, but for white space around them.

    Args:
        source: Where the stories are:
            - a file, or a list of files: CSV of ROCStories or of the Story Cloze Test (with the right ending), JSON
              Lines (`{"context": ["...", "..."], "ending": "..."}`), a pair `X.post` (sentences separated by tabs)
              and `X.response`, or plain text, a story a line or a paragraph; any of them gzipped too;
            - a dict from splits to files: `{"train": ["spring.csv", "winter.csv"], "test": "test.jsonl"}`;
            - a directory with files named after splits (`train.csv`, `val.jsonl`, `test.post` ...), or one that
              `save_to_disk` of `datasets` has written;
            - the name of a dataset on the Hub, or a `Dataset` or `DatasetDict`, with the columns `context` and
              `ending`, those of one of the CSV files, or `text`;
            - `"embedded"`: the small corpus that comes with this package.
        format: What the files are, where their names and headers don't say it: `rocstories`, `storycloze`,
            `post-response`, `jsonl` or `text`.
        split: The only split to load. What has no splits of its own gets this name, or else `train`. The names
            `val`, `valid` and `dev` become `validation`.

    Returns:
        `DatasetDict`: The splits that the source has. `split_stories` makes them where there is but one.
    """
    if format is not None:
        checked_format(format)
    if split is not None:
        split = canonical_split(split)
    readers = _find_readers(source, format, split or "train")
    if split is not None and split not in readers:
        raise ValueError(f"`split` {split!r} is not there; there is {', '.join(readers)}.")
    chosen = readers if split is None else {split: readers[split]}
    return DatasetDict({name: Dataset.from_list(read(), features=STORY_FEATURES) for name, read in chosen.items()})


def load_story_cloze(path: str | Path) -> Dataset:
    """Load a Story Cloze CSV file as questions: `context`, `ending1`, `ending2`, and which is `right`, 1 or 2."""
    return Dataset.from_list(read_cloze_questions(Path(path)), features=CLOZE_FEATURES)


def _find_readers(source: Any, format: str | None, only_split: str) -> dict[str, Reader]:
    """A reader for every split of the source; one that has no splits is `only_split`."""
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
    paths = dict.fromkeys(post_of_pair(Path(file).expanduser()) for file in named)
    if not paths:
        raise ValueError("`source` has an empty list of files.")
    return [story for path in paths for story in read_stories(path, format)]


def _table_readers(tables: Dataset | DatasetDict, name: str, format: str | None, only_split: str) -> dict[str, Reader]:
    if isinstance(tables, Dataset):
        return {only_split: partial(stories_of_table, tables, name, format)}
    if not tables:
        raise ValueError(f"{name} is empty: it has no split.")
    return _by_canonical_name(
        {split: partial(stories_of_table, table, f"{name}, split {split}", format) for split, table in tables.items()}
    )


def _by_canonical_name(readers: Mapping[str, Reader]) -> dict[str, Reader]:
    names = [canonical_split(split) for split in readers]
    if len(set(names)) < len(names):
        raise ValueError(f"Two of the splits {', '.join(readers)} mean the same: val, valid and dev are validation.")
    return dict(zip(names, readers.values(), strict=True))


def _is_hub_name(source: str) -> bool:
    return _HUB_NAME.fullmatch(source) is not None and story_suffix(Path(source)) not in STORY_SUFFIXES
