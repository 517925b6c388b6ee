"""One story from one record: whatever its fields are called, the same checks and the same shape."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from ..modeling.sentences import split_sentences
from ..modeling.words import normalize_text
from .embedded import StoryRecord

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
