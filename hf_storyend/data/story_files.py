"""Story files: CSV, JSON Lines, `.post`/`.response` pairs and plain text; and the files of a directory's splits."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from ..modeling.text_processing import split_sentences
from .story_records import (
    CONTEXT_AND_ENDING,
    ROCSTORIES,
    STORY_CLOZE,
    ClozeRecord,
    ColumnLayout,
    Field,
    StoryRecord,
    choose_layout,
    cloze_from_fields,
    story_from_text,
    validate_sentence,
)
from .text_files import at_line, read_csv, read_json_lines, read_text, required, split_lines

logger = logging.getLogger(__name__)

# Number of its first line, and its lines.
Paragraph = tuple[int, list[str]]
StoryReader = Callable[[Path], Iterator[StoryRecord]]


def read_stories(path: Path, format: str | None = None) -> list[StoryRecord]:
    """
    Return all stories of a file.

    Args:
        path: File to read.
        format: One of `STORY_FORMATS`; by default the suffix and, for CSV files, the header decide.
    """
    suffix = story_suffix(path)
    if format is None and suffix not in STORY_SUFFIXES:
        raise ValueError(
            f"{path}: what is in a file called {path.name!r} is not known. Say it with `format`, one of "
            f"{', '.join(STORY_FORMATS)}; or let its name end in {', '.join(STORY_SUFFIXES)}, or one of these and .gz."
        )
    reader = STORY_SUFFIXES[suffix] if format is None else STORY_FORMATS[validate_format(format)]
    stories = list(reader(path))
    if not stories:
        raise ValueError(f"{path} is empty: there is no story in it.")
    return stories


def read_cloze_questions(path: Path) -> list[ClozeRecord]:
    """Return all questions of a Story Cloze CSV file."""
    questions = []
    for line, _, fields in _csv_fields(path, [STORY_CLOZE]):
        with at_line(path, line):
            questions.append(cloze_from_fields(fields))
    if not questions:
        raise ValueError(f"{path} is empty: there is no question in it.")
    return questions


def validate_format(format: str) -> str:
    """Return the name of a format; raise if there is none of this name."""
    if format not in STORY_FORMATS:
        raise ValueError(f"`format` must be one of {', '.join(STORY_FORMATS)}; got {format!r}.")
    return format


def story_suffix(path: Path) -> str:
    """Return the suffix of a file without `.gz`: `.jsonl` of `train.jsonl.gz`."""
    return Path(path.name.removesuffix(".gz")).suffix.lower()


def _read_csv_stories(path: Path, layouts: Sequence[ColumnLayout]) -> Iterator[StoryRecord]:
    for line, layout, fields in _csv_fields(path, layouts):
        with at_line(path, line):
            story = layout.build(fields)
        yield story


def _csv_fields(path: Path, layouts: Sequence[ColumnLayout]) -> Iterator[tuple[int, ColumnLayout, list[Field]]]:
    names, rows = read_csv(path)
    with at_line(path, 1):
        layout, columns = choose_layout(names, layouts)
    positions = [names.index(column) for column in columns]
    for line, row in rows:
        yield line, layout, [(names[position], row[position]) for position in positions]


def _read_json_stories(path: Path) -> Iterator[StoryRecord]:
    for number, record in read_json_lines(path):
        with at_line(path, number):
            story = CONTEXT_AND_ENDING.build([(key, required(record, key)) for key in CONTEXT_AND_ENDING.columns])
        yield story


def _read_paired_stories(path: Path) -> Iterator[StoryRecord]:
    """Read a pair of files, named by either of them or by the common part of their names."""
    post_path, response_path = _pair(path)
    posts, responses = split_lines(read_text(post_path)), split_lines(read_text(response_path))
    if len(posts) != len(responses):
        raise ValueError(
            f"{post_path} has {len(posts)} lines, {response_path} {len(responses)}: line by line a context must have "
            "its ending. Was one of them truncated?"
        )
    _check_tabs(post_path, posts)
    for line, (post, response) in enumerate(zip(posts, responses, strict=True), start=1):
        with at_line(post_path, line):
            sentences = enumerate(post.split("\t"), start=1)
            context = [validate_sentence(f"sentence {number}", sentence) for number, sentence in sentences]
        with at_line(response_path, line):
            ending = validate_sentence("ending", response)
        yield {"context": context, "ending": ending}


def post_path_of(path: Path) -> Path:
    """Return the `.post` file that belongs to a `.response` file; any other path is returned unchanged."""
    for response, post in ((".response", ".post"), (".response.gz", ".post.gz")):
        if path.name.endswith(response):
            return path.with_name(path.name.removesuffix(response) + post)
    return path


def _pair(path: Path) -> tuple[Path, Path]:
    post = post_path_of(path)
    if not post.name.endswith((".post", ".post.gz")):
        post = post.with_name(post.name + ".post")
    stem, _, compressed = post.name.rpartition(".post")
    response = post.with_name(f"{stem}.response{compressed}")
    for one, other in ((post, response), (response, post)):
        if not one.is_file():
            raise ValueError(f"{one} is missing: contexts and endings are a pair of files, and {other} needs it.")
    return post, response


def _check_tabs(path: Path, posts: list[str]) -> None:
    """Refuse contexts joined by blanks, which would be read as one long sentence."""
    if posts and not any("\t" in post for post in posts) and all(len(split_sentences(post)) > 1 for post in posts):
        raise ValueError(f"{path}, line 1: the sentences of a context must be separated by a tab; there is none.")


def _read_text_stories(path: Path) -> Iterator[StoryRecord]:
    """Read a story per paragraph or, if there are no blank lines, per line; its last sentence is the ending."""
    for line, block in _story_paragraphs(path):
        with at_line(path, line):
            story = story_from_text([("story", "\n".join(block))])
        yield story


def _story_paragraphs(path: Path) -> list[Paragraph]:
    paragraphs = _paragraphs(split_lines(read_text(path)))
    if len(paragraphs) <= 1:
        return [(first + offset, [line]) for first, block in paragraphs for offset, line in enumerate(block)]
    longer = [paragraph for paragraph in paragraphs if len(paragraph[1]) > 1]
    # A stray blank line in a list of stories would turn it into two giant stories.
    if longer and all(_is_story(line) for _, block in longer for line in block):
        first, block = longer[0]
        raise ValueError(
            f"{path}, lines {first} to {first + len(block) - 1}: one story, or {len(block)}? Every line could be one, "
            "but there are blank lines, as if a paragraph were. Take them out, or put one between all stories."
        )
    return paragraphs


def _paragraphs(lines: list[str]) -> list[Paragraph]:
    paragraphs: list[Paragraph] = []
    is_open = False
    for number, line in enumerate(lines, start=1):
        if line.strip() and is_open:
            paragraphs[-1][1].append(line)
        elif line.strip():
            paragraphs.append((number, [line]))
        is_open = bool(line.strip())
    return paragraphs


def _is_story(line: str) -> bool:
    return line.rstrip("\"') ").endswith((".", "!", "?")) and len(split_sentences(line)) > 1


STORY_FORMATS: dict[str, StoryReader] = {
    "rocstories": partial(_read_csv_stories, layouts=[ROCSTORIES]),
    "storycloze": partial(_read_csv_stories, layouts=[STORY_CLOZE]),
    "post-response": _read_paired_stories,
    "jsonl": _read_json_stories,
    "text": _read_text_stories,
}

STORY_SUFFIXES: dict[str, StoryReader] = {
    ".csv": partial(_read_csv_stories, layouts=[ROCSTORIES, STORY_CLOZE]),
    ".jsonl": _read_json_stories,
    ".json": _read_json_stories,
    ".post": _read_paired_stories,
    ".response": _read_paired_stories,
    ".txt": _read_text_stories,
}

_SPLITS = ("train", "validation", "test")
_OTHER_NAMES = {"val": "validation", "valid": "validation", "dev": "validation"}
_ADVICE = 'Name the files of each split instead: {"train": ["a.csv", "b.csv"], "test": "c.csv"}.'


def canonical_split(name: str) -> str:
    """Return `validation` for `val`, `valid` and `dev`; any other name is returned unchanged."""
    return _OTHER_NAMES.get(name, name)


def find_split_files(directory: Path) -> dict[str, Path]:
    """
    Return the file of each split in a directory: `train.csv`, `val.jsonl.gz`, `test.post` with `test.response` ...

    Files with other names are ignored, with a warning if a name starts like that of a split. Two files for one split,
    or no file at all, are an error.
    """
    found: dict[str, Path] = {}
    candidates = [file for file in sorted(directory.iterdir()) if story_suffix(file) in STORY_SUFFIXES]
    for file in dict.fromkeys(map(post_path_of, candidates)):
        split = canonical_split(_stem(file))
        if split not in _SPLITS:
            _warn_if_meant(file)
        elif split in found:
            raise ValueError(f"{directory}: both {found[split].name} and {file.name} are the {split} split. {_ADVICE}")
        else:
            found[split] = file
    if not found:
        names = ", ".join(file.name for file in candidates) or "nothing that could be stories"
        raise ValueError(f"{directory}: no file is called train, validation or test; there is {names}. {_ADVICE}")
    return {split: found[split] for split in _SPLITS if split in found}


def _stem(file: Path) -> str:
    return Path(file.name.removesuffix(".gz")).stem.lower()


def _warn_if_meant(file: Path) -> None:
    first_word = re.split(r"[\W_]", _stem(file), maxsplit=1)[0]
    if canonical_split(first_word) in _SPLITS:
        logger.warning("%s is left out: it is not called %s. %s", file, first_word, _ADVICE)
