"""Explanations as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .result import EndingWord, Explanation, ReadTriple, ReadWord

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&$]|^[-+])")


def describe(explanation: Explanation, max_reads: int) -> str:
    """The whole explanation as a page."""
    story = [f"{number}. {escape(sentence)}" for number, sentence in enumerate(explanation.story, start=1)]
    parts = [
        f"# {escape(explanation.ending) or '(an ending without words)'}",
        "\n".join(story),
        f"Log probability of the ending: {explanation.log_probability:.2f}.",
        "## What each word read",
        "\n".join(_word_table(explanation, max_reads)),
        "## Clues",
        _clue_introduction(explanation),
        "\n".join(_clue_lines(explanation, max_reads)),
    ]
    if explanation.notes:
        parts += ["## Notes", "\n".join(f"- {escape(note)}" for note in explanation.notes)]
    return "\n\n".join(parts) + "\n"


def escape(text: str) -> str:
    """Text that Markdown prints as it is."""
    return _SPECIAL.sub(r"\\\1", text).replace("\n", " ")


def table_lines(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a Markdown table; cells must be escaped."""
    return [f"| {' | '.join(cells)} |" for cells in (header, ["---"] * len(header), *rows)]


def _word_table(explanation: Explanation, max_reads: int) -> list[str]:
    header = ["word", "probability", "words read"]
    header += ["triples read", "no knowledge"] if explanation.graphs is not None else []
    header += ["copied from"] if explanation.system["copy"] else []
    return table_lines(header, (_word_row(word, max_reads) for word in explanation.words))


def _word_row(word: EndingWord, max_reads: int) -> list[str]:
    row = [escape(word.word), f"{word.probability:.3f}", _reads(word.words[:max_reads])]
    if word.triples is not None:
        row += [_triples(word.triples[:max_reads]), f"{word.empty_graphs or 0:.2f}"]
    if word.copied is not None:
        row.append(_reads(word.copied[:max_reads]))
    return row


def _reads(reads: Sequence[ReadWord]) -> str:
    return ", ".join(f"{escape(read.word)} {read.weight:.2f}" for read in reads if _shows(read.weight)) or "-"


def _triples(triples: Sequence[ReadTriple]) -> str:
    shown = [
        f"{escape(f'({triple.head}, {triple.relation}, {triple.tail})')} {triple.weight:.2f}"
        for triple in triples
        if _shows(triple.weight)
    ]
    return ", ".join(shown) or "-"


def _shows(weight: float) -> bool:
    """Whether two digits are enough to tell it from nothing."""
    return weight >= 0.005


def _clue_introduction(explanation: Explanation) -> str:
    if explanation.system["story_encoder"] == "incremental":
        return "From the ending back, the words of each sentence by what the next one took from them:"
    return "The words of each sentence by what the ending took from them:"


def _clue_lines(explanation: Explanation, max_reads: int) -> list[str]:
    return [f"- sentence {clues.sentence}: {_reads(clues.words[:max_reads])}" for clues in explanation.clues]
