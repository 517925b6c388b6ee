"""Which file of a directory is which split, told by its name."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypedDict

import datasets
from datasets import Dataset, DatasetDict
from pyarrow import ArrowException

from ..modeling.sentences import split_sentences
from ..modeling.words import normalize_text
from .text_files import at_line, read_csv, read_json_lines, read_text, required, split_lines


class StoryRecord(TypedDict):
    """One story: the sentences of its context, and its ending."""

    context: list[str]
    ending: str


Field = tuple[str, Any]  # what a field is called where it stands, and its value


class ClozeRecord(TypedDict):
    """One Story Cloze question: a context, two endings, and the number of the right one."""

    context: list[str]
    ending1: str
    ending2: str
    right: int


def checked_sentence(name: str, value: Any) -> str:
    """A sentence without white space around it; what is no text, or has nothing to read in it, is refused."""
    if not isinstance(value, str):
        raise ValueError(f"`{name}` must be a string; got {_shown(value)}")
    sentence = value.strip()
    if not normalize_text(sentence).strip():
        raise ValueError(f"`{name}` is blank: every sentence must have a word")
    try:
        sentence.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"`{name}` has half a character ({_shown(error.object[error.start])})") from error
    return sentence


def story_from_fields(fields: Sequence[Field]) -> StoryRecord:
    """A story a sentence a field, the ending last."""
    *context, ending = (checked_sentence(name, value) for name, value in fields)
    return {"context": context, "ending": ending}


def story_from_context_and_ending(fields: Sequence[Field]) -> StoryRecord:
    """A story whose first field is a list of sentences."""
    (name, context), ending = fields
    if not isinstance(context, list) or not context:
        raise ValueError(f"`{name}` must be a list of at least one sentence; got {_shown(context)}")
    named = [(f"{name}[{position}]", sentence) for position, sentence in enumerate(context)]
    return story_from_fields([*named, ending])


def story_from_text(fields: Sequence[Field]) -> StoryRecord:
    """A story in one piece of text; its last sentence is the ending."""
    ((name, text),) = fields
    sentences = split_sentences(checked_sentence(name, text))
    if len(sentences) < 2:
        raise ValueError(
            f"`{name}` has {len(sentences)} sentence, a story needs two or more, the last one its ending; "
            f"got {_shown(text)}"
        )
    return {"context": sentences[:-1], "ending": sentences[-1]}


def cloze_from_fields(fields: Sequence[Field]) -> ClozeRecord:
    """A question whose last three fields are the two endings and which of them is right."""
    *context, first, second, (name, right) = fields
    if str(right).strip() not in ("1", "2"):
        raise ValueError(f"`{name}` must be 1 or 2, the number of the right ending; got {_shown(right)}")
    return {
        "context": [checked_sentence(*field) for field in context],
        "ending1": checked_sentence(*first),
        "ending2": checked_sentence(*second),
        "right": int(right),
    }


def story_from_cloze(fields: Sequence[Field]) -> StoryRecord:
    """The context of a question with its right ending."""
    question = cloze_from_fields(fields)
    ending = question["ending1"] if question["right"] == 1 else question["ending2"]
    return {"context": question["context"], "ending": ending}


@dataclass(frozen=True)
class ColumnLayout:
    """The columns that a kind of story table has, in the order that `story` wants them."""

    format: str
    columns: tuple[str, ...]
    story: Callable[[Sequence[Field]], StoryRecord]

    def find(self, names: Sequence[str]) -> list[str]:
        """What the columns are called in a table with these names; empty if one is missing."""
        by_key = {_column_key(name): name for name in names}
        found = [by_key[_column_key(column)] for column in self.columns if _column_key(column) in by_key]
        return found if len(found) == len(self.columns) else []


ROCSTORIES = ColumnLayout("rocstories", tuple(f"sentence{number}" for number in range(1, 6)), story_from_fields)
STORY_CLOZE = ColumnLayout(
    "storycloze",
    (
        *(f"InputSentence{number}" for number in range(1, 5)),
        "RandomFifthSentenceQuiz1",
        "RandomFifthSentenceQuiz2",
        "AnswerRightEnding",
    ),
    story_from_cloze,
)
CONTEXT_AND_ENDING = ColumnLayout("jsonl", ("context", "ending"), story_from_context_and_ending)
WHOLE_TEXT = ColumnLayout("text", ("text",), story_from_text)


def choose_layout(names: Sequence[str], layouts: Sequence[ColumnLayout]) -> tuple[ColumnLayout, list[str]]:
    """The first layout whose columns are all there, and what they are called."""
    for layout in layouts:
        if found := layout.find(names):
            return layout, found
    expected = "; ".join(f"{layout.format}: {', '.join(layout.columns)}" for layout in layouts)
    raise ValueError(f"the columns are {', '.join(map(repr, names))}, but a story table must have ({expected})")


def _column_key(name: str) -> str:
    """Releases of one corpus differ in case and underscores: `InputSentence1`, `input_sentence_1`."""
    return re.sub(r"[\s_]", "", name.lower()).removeprefix("randomfifth")


def _shown(value: Any) -> str:
    text = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


Paragraph = tuple[int, list[str]]  # the number of its first line, and its lines


def read_plain_text(path: Path) -> Iterator[StoryRecord]:
    """Stories whose last sentence is the ending; if there are blank lines between them, paragraphs are stories."""
    for line, block in _stories(path):
        with at_line(path, line):
            story = story_from_text([("story", "\n".join(block))])
        yield story


def _stories(path: Path) -> list[Paragraph]:
    paragraphs = _paragraphs(split_lines(read_text(path)))
    if len(paragraphs) <= 1:
        return [(first + offset, [line]) for first, block in paragraphs for offset, line in enumerate(block)]
    longer = [paragraph for paragraph in paragraphs if len(paragraph[1]) > 1]
    # A stray blank line in a list of stories would make two giant stories of it.
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


def read_paired_files(path: Path) -> Iterator[StoryRecord]:
    """Stories of a pair, named by either file or by what their names have in common."""
    post_path, response_path = _pair(path)
    posts, responses = split_lines(read_text(post_path)), split_lines(read_text(response_path))
    if len(posts) != len(responses):
        raise ValueError(
            f"{post_path} has {len(posts)} lines, {response_path} {len(responses)}: line by line a context must have "
            "its ending. Was one of them cut off?"
        )
    _check_tabs(post_path, posts)
    for line, (post, response) in enumerate(zip(posts, responses, strict=True), start=1):
        with at_line(post_path, line):
            sentences = enumerate(post.split("\t"), start=1)
            context = [checked_sentence(f"sentence {number}", sentence) for number, sentence in sentences]
        with at_line(response_path, line):
            ending = checked_sentence("ending", response)
        yield {"context": context, "ending": ending}


def post_of_pair(path: Path) -> Path:
    """The `.post` that belongs to a `.response`; any other path as it is."""
    for response, post in ((".response", ".post"), (".response.gz", ".post.gz")):
        if path.name.endswith(response):
            return path.with_name(path.name.removesuffix(response) + post)
    return path


def _pair(path: Path) -> tuple[Path, Path]:
    post = post_of_pair(path)
    if not post.name.endswith((".post", ".post.gz")):
        post = post.with_name(post.name + ".post")
    stem, _, compressed = post.name.rpartition(".post")
    response = post.with_name(f"{stem}.response{compressed}")
    for one, other in ((post, response), (response, post)):
        if not one.is_file():
            raise ValueError(f"{one} is missing: contexts and endings are a pair of files, and {other} needs it.")
    return post, response


def _check_tabs(path: Path, posts: list[str]) -> None:
    """Contexts that were joined by blanks would pass for contexts of one very long sentence."""
    if posts and not any("\t" in post for post in posts) and all(len(split_sentences(post)) > 1 for post in posts):
        raise ValueError(f"{path}, line 1: the sentences of a context must be separated by a tab; there is none.")


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


_SPLITS = ("train", "validation", "test")
_OTHER_NAMES = {"val": "validation", "valid": "validation", "dev": "validation"}


def canonical_split(name: str) -> str:
    """`val`, `valid` and `dev` are `validation`; any other name is kept."""
    return _OTHER_NAMES.get(name, name)


def find_split_files(directory: Path) -> dict[str, Path]:
    """
    The file of each split in a directory: `train.csv`, `val.jsonl.gz`, `test.post` with `test.response` ...

    Files with other names are left alone, and a warning says so where a name starts like that of a split. Two files
    for one split, or none at all, are an error: which ones are meant can then be said with a dict.
    """
    found: dict[str, Path] = {}
    candidates = [file for file in sorted(directory.iterdir()) if story_suffix(file) in STORY_SUFFIXES]
    for file in dict.fromkeys(map(post_of_pair, candidates)):
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


_ADVICE = 'Name the files of each split instead: {"train": ["a.csv", "b.csv"], "test": "c.csv"}.'


def _stem(file: Path) -> str:
    return Path(file.name.removesuffix(".gz")).stem.lower()


def _warn_if_meant(file: Path) -> None:
    first_word = re.split(r"[\W_]", _stem(file), maxsplit=1)[0]
    if canonical_split(first_word) in _SPLITS:
        warnings.warn(f"{file} is left out: it is not called {first_word}. {_ADVICE}", stacklevel=5)
