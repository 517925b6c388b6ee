"""What annotators score: two metrics with scores from 0 to 2, and the type of the main error."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """
    A metric of the study.

    Args:
        name: Name in files.
        question: Question to the annotator.
        meanings: Meanings of the scores 0, 1 and 2.
    """

    name: str
    question: str
    meanings: tuple[str, str, str]


@dataclass(frozen=True)
class ErrorType:
    """
    A type of error.

    Args:
        name: Name in files.
        title: Name on the page.
        meaning: When it applies.
        key: Key that selects it on the page.
    """

    name: str
    title: str
    meaning: str
    key: str


SCORES = (0, 1, 2)

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
