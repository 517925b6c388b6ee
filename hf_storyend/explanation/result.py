"""What an explanation holds: the ending, what each of its words read, and the clues behind it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

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


Kind = Literal["state", "knowledge"]
Format = Literal["json", "md", "html", "svg", "png"]


@dataclass(frozen=True)
class ReadWord:
    """A word of the story and how much of a weight it got; sentences and words are counted from 1."""

    sentence: int
    position: int
    word: str
    weight: float


@dataclass(frozen=True)
class ReadTriple:
    """A triple in the graph of a word of the story, and the weight with which it was read."""

    sentence: int
    position: int
    word: str
    head: str
    relation: str
    tail: str
    weight: float


@dataclass(frozen=True)
class EndingWord:
    """
    A word of the ending and what it was made of, the heaviest first.

    Args:
        word: The word; the end symbol is one, too.
        probability, log_probability: What the model gave it, behind the words before it, among all words.
        words: The words of the story that it read, by their states.
        graphs: The words of the story whose graphs it read; None if the model reads no knowledge.
        empty_graphs: What it gave to words without triples: "no knowledge"; None if the model reads no knowledge.
        triples: The triples in those graphs, by knowledge attention times triple attention.
        copied: Where it was copied from, by the share of its probability; None if the model does not copy.
    """

    word: str
    probability: float
    log_probability: float
    words: list[ReadWord]
    graphs: list[ReadWord] | None = None
    empty_graphs: float | None = None
    triples: list[ReadTriple] | None = None
    copied: list[ReadWord] | None = None


@dataclass(frozen=True)
class GraphTriple:
    """A triple of a word's graph and its weight in it."""

    head: str
    relation: str
    tail: str
    weight: float


@dataclass(frozen=True)
class AttentionMatrix:
    """
    What the words of sentence `reader` (one more than the story has: the ending) gave to those of sentence `source`:
    a row for each word of the reader, a column for each of the source.
    """

    kind: Kind
    reader: int
    source: int
    weights: list[list[float]]


@dataclass(frozen=True)
class SentenceClues:
    """The words of a sentence by how much of the ending can be followed back to them."""

    sentence: int
    words: list[ReadWord]


@dataclass(frozen=True)
class ClueLink:
    """The word of an earlier sentence that a clue word read most: an arrow of the clue picture."""

    kind: Kind
    reader: int
    reader_position: int
    source: int
    source_position: int
    weight: float


@dataclass(frozen=True)
class Explanation:
    """
    An ending and what it was made of.

    Args:
        story: The sentences as given.
        sentences: Their words, as the story writes them.
        unknown: Words that the vocabulary lacks, as pairs of sentence and position, counted from 1.
        ending: The ending as a person would print it.
        words: Its words, the end symbol included.
        log_probability: Sum of those of its words.
        graphs: For each word of the story, the triples of its graph; None if the model reads no knowledge.
        attentions: All attention matrices.
        clues: For each sentence, last one first, its words by what the ending took from them.
        links: The strongest ties between clue words.
        system: The settings that make the model what it is: `story_encoder`, `knowledge`, `copy`.
        notes: What can't be said of this model or ending.
    """

    story: list[str]
    sentences: list[list[str]]
    unknown: list[tuple[int, int]]
    ending: str
    words: list[EndingWord]
    log_probability: float
    graphs: list[list[list[GraphTriple]]] | None
    attentions: list[AttentionMatrix]
    clues: list[SentenceClues]
    links: list[ClueLink]
    system: dict[str, Any]
    notes: list[str] = field(default_factory=list)

    def words_of(self, sentence: int) -> list[str]:
        """The words of a sentence, counted from 1; behind the last one comes the ending."""
        return [*self.sentences, [word.word for word in self.words]][sentence - 1]

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain lists, dictionaries, strings and numbers."""
        return json.loads(self.to_json())

    def to_json(self) -> str:
        """JSON text."""
        return json.dumps(asdict(self), ensure_ascii=False, indent=1, allow_nan=False)

    def to_markdown(self, max_reads: int = 3) -> str:
        """A page to read, with the heaviest `max_reads` of everything."""
        from .markdown import describe

        return describe(self, max_reads)

    def to_html(self) -> str:
        """One interactive page that needs no network."""
        from .page import render_page

        return render_page(self)

    def draw_clues(self, path: str | Path) -> None:
        """Write the clue arrows between sentences as a picture; the format is that of the file's name."""
        from .clue_picture import draw_clues

        draw_clues(self, Path(path))

    def draw_attention(self, path: str | Path) -> None:
        """Write the grid of attention matrices as a picture; the format is that of the file's name."""
        from .attention_picture import draw_attention

        draw_attention(self, Path(path))
