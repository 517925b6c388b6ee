"""Records of stories, validated field by field, and the column layouts of the tables that hold them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from ..modeling.text_processing import normalize_text, split_sentences
from .text_files import shorten

# Name of a field in its source, for errors, and its value.
Field = tuple[str, Any]


class StoryRecord(TypedDict):
    """A story: the sentences of its context, and its ending."""

    context: list[str]
    ending: str


class ClozeRecord(TypedDict):
    """A Story Cloze question: a context, two endings, and the number of the right one."""

    context: list[str]
    ending1: str
    ending2: str
    right: int


def validate_sentence(name: str, value: Any) -> str:
    """Return a sentence without surrounding white space; raise if it is no string, blank, or not valid Unicode."""
    if not isinstance(value, str):
        raise ValueError(f"`{name}` must be a string; got {_excerpt(value)}")
    sentence = value.strip()
    if not normalize_text(sentence).strip():
        raise ValueError(f"`{name}` is blank: every sentence must have a word")
    try:
        sentence.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"`{name}` has half a character ({_excerpt(error.object[error.start])})") from error
    return sentence


def story_from_sentences(fields: Sequence[Field]) -> StoryRecord:
    """Build a story from a field per sentence; the last one is the ending."""
    *context, ending = (validate_sentence(name, value) for name, value in fields)
    return {"context": context, "ending": ending}


def story_from_context_and_ending(fields: Sequence[Field]) -> StoryRecord:
    """Build a story from a list of sentences and an ending."""
    (name, context), ending = fields
    if not isinstance(context, list) or not context:
        raise ValueError(f"`{name}` must be a list of at least one sentence; got {_excerpt(context)}")
    sentences = [(f"{name}[{position}]", sentence) for position, sentence in enumerate(context)]
    return story_from_sentences([*sentences, ending])


def story_from_text(fields: Sequence[Field]) -> StoryRecord:
    """Build a story from one text; its last sentence is the ending."""
    ((name, text),) = fields
    sentences = split_sentences(validate_sentence(name, text))
    if len(sentences) < 2:
        raise ValueError(
            f"`{name}` has {len(sentences)} sentence, a story needs two or more, the last one its ending; "
            f"got {_excerpt(text)}"
        )
    return {"context": sentences[:-1], "ending": sentences[-1]}


def cloze_from_fields(fields: Sequence[Field]) -> ClozeRecord:
    """Build a question from a field per sentence, two endings and the number of the right one."""
    *context, first, second, (name, right) = fields
    if str(right).strip() not in ("1", "2"):
        raise ValueError(f"`{name}` must be 1 or 2, the number of the right ending; got {_excerpt(right)}")
    return {
        "context": [validate_sentence(*field) for field in context],
        "ending1": validate_sentence(*first),
        "ending2": validate_sentence(*second),
        "right": int(right),
    }


def story_from_cloze(fields: Sequence[Field]) -> StoryRecord:
    """Build a story from the context of a question and its right ending."""
    question = cloze_from_fields(fields)
    ending = question["ending1"] if question["right"] == 1 else question["ending2"]
    return {"context": question["context"], "ending": ending}


def _excerpt(value: Any) -> str:
    return shorten(ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value), 80)


@dataclass(frozen=True)
class ColumnLayout:
    """
    Columns of a kind of story table.

    Args:
        format: Name of the format.
        columns: Names of the columns, in the order in which `build` takes them.
        build: Builds a story from a row.
    """

    format: str
    columns: tuple[str, ...]
    build: Callable[[Sequence[Field]], StoryRecord]

    def find(self, names: Sequence[str]) -> list[str]:
        """Return the names that the columns have in a table; empty if one is missing."""
        by_key = {_column_key(name): name for name in names}
        found = [by_key[_column_key(column)] for column in self.columns if _column_key(column) in by_key]
        return found if len(found) == len(self.columns) else []


ROCSTORIES = ColumnLayout("rocstories", tuple(f"sentence{number}" for number in range(1, 6)), story_from_sentences)
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
    """Return the first layout whose columns a table has, and the names of these columns in the table."""
    for layout in layouts:
        if found := layout.find(names):
            return layout, found
    expected = "; ".join(f"{layout.format}: {', '.join(layout.columns)}" for layout in layouts)
    raise ValueError(f"the columns are {', '.join(map(repr, names))}, but a story table must have ({expected})")


def _column_key(name: str) -> str:
    """Normalise case and underscores, in which releases differ: `InputSentence1`, `input_sentence_1`."""
    return re.sub(r"[\s_]", "", name.lower()).removeprefix("randomfifth")
