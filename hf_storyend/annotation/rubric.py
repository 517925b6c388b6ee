"""What annotators are asked: two metrics scored 0, 1 or 2 independently of each other, and the kind of error."""

from __future__ import annotations

from dataclasses import dataclass

SCORES = (0, 1, 2)


@dataclass(frozen=True)
class Metric:
    """A metric: its name in files, the question it puts, and what scores 0, 1 and 2 mean."""

    name: str
    question: str
    meanings: tuple[str, str, str]


@dataclass(frozen=True)
class ErrorType:
    """A kind of error: its name in files, its name on paper, when it fits, and the key that names it on the page."""

    name: str
    title: str
    meaning: str
    key: str


METRICS = (
    Metric(
        "grammar",
        "Is the ending natural, fluent English?",
        ("Broken: can't be understood", "A few mistakes, still understandable", "No mistakes"),
    ),
    Metric(
        "logicality",
        "Does the ending follow from the story?",
        ("Does not fit the story at all", "Related, but something does not fit", "Fits: sensible and coherent"),
    ),
)

ERROR_TYPES = (
    ErrorType("grammar", "Bad grammar", "broken or repeated wording", "g"),
    ErrorType("logicality", "Bad logicality", "wrong person, thing or event", "l"),
    ErrorType("other", "Other", "odd or unknown words, anything else", "o"),
)
