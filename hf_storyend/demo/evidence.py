"""What the words of an ending read, as pieces of HTML in which all text of others is escaped."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from html import escape
from typing import Any

from ..explanation.result import EndingWord, Explanation, ReadWord
from .writing import WrittenEndings

# Less can't be told from nothing by two digits, and more is not read.
_SMALLEST, _MAX_READS = 0.005, 3


def message_html(text: str) -> str:
    """A sentence that says what to mend."""
    return f'<p class="problem" role="alert">{escape(text)}</p>'


def ending_html(written: WrittenEndings, number: int) -> str:
    """An ending, the one without the visitor's triples beside it if there is one."""
    explanation = written.endings[number]
    parts = [f'<p class="ending" dir="auto">{escape(ending_text(explanation))}</p>']
    if written.without_triples is not None and number == 0:
        before = escape(written.without_triples or "(an ending without words)")
        parts.append(f'<p class="before">Without your triples: <q dir="auto">{before}</q></p>')
    return "".join(parts)


def ending_text(explanation: Explanation) -> str:
    """The ending as a person reads it."""
    return explanation.ending or "(an ending without words)"


def evidence_html(explanation: Explanation) -> str:
    """A table with a row for each word: how likely it was, and the words and triples that it read most."""
    columns = _columns(explanation)
    header = "".join(f'<th scope="col">{name}</th>' for name in ("Word", *columns))
    rows = "".join(_row(word, columns) for word in explanation.words)
    notes = "".join(f"<li>{escape(note)}</li>" for note in explanation.notes)
    return (
        f'<table class="evidence"><thead><tr>{header}</tr></thead><tbody>{rows}</tbody></table>'
        f'<p class="sum">Log probability of the ending: {explanation.log_probability:.2f}.</p>'
        f'<ul class="notes">{notes}</ul>'
    )


def page_html(explanation: Explanation) -> str:
    """The explanation's own page in a frame that may run its script but reach nothing outside."""
    page = escape(explanation.to_html(), quote=True)
    # What is in a sandbox can't be measured. Too low is no harm: then it scrolls.
    sentences = [*explanation.sentences, [word.word for word in explanation.words]]
    num_lines = sum(1 + sum(len(word) + 2 for word in words) // 36 for words in sentences)
    return (
        '<iframe class="page" sandbox="allow-scripts" title="What each word of story and ending read" '
        f'style="height:{44 + 4 * num_lines}rem" srcdoc="{page}"></iframe>'
    )


def picture_html(svg: bytes, description: str) -> str:
    """A picture, as an image: whatever it holds, an image runs nothing."""
    source = f"data:image/svg+xml;base64,{b64encode(svg).decode()}"
    # Focusable, so that keys can scroll it where it is wider than the screen.
    return (
        f'<div class="picture" tabindex="0" role="group" aria-label="{escape(description)}">'
        f'<img src="{source}" alt="{escape(description)}"></div>'
    )


def evidence_of(word: EndingWord) -> dict[str, Any]:
    """The same for programs: the words and triples that a word of the ending read most."""
    return {
        "word": word.word,
        "probability": word.probability,
        "words": [asdict(read) for read in _top(word.words)],
        "triples": [asdict(read) for read in _top(word.triples or ())],
        "copied": [asdict(read) for read in _top(word.copied or ())],
    }


def _columns(explanation: Explanation) -> dict[str, Callable[[EndingWord], str]]:
    columns: dict[str, Callable[[EndingWord], str]] = {
        "Probability": lambda word: f"{word.probability:.3f}",
        "Words it read": lambda word: _word_reads(word.words),
    }
    if explanation.graphs is not None:
        columns["Triples it read"] = lambda word: _triple_reads(word)
    if explanation.system["copy"]:
        columns["Copied from"] = lambda word: _word_reads(word.copied or ())
    return columns


def _row(word: EndingWord, columns: dict[str, Callable[[EndingWord], str]]) -> str:
    # The label is for narrow screens, where cells stand below each other.
    cells = "".join(f'<td data-label="{name}">{cell(word)}</td>' for name, cell in columns.items())
    return f'<tr><th scope="row" dir="auto">{escape(word.word)}</th>{cells}</tr>'


def _word_reads(reads: Sequence[ReadWord]) -> str:
    return _chips("state", ((read.word, f"sentence {read.sentence}", read.weight) for read in _top(reads)))


def _triple_reads(word: EndingWord) -> str:
    chips = (
        (f"{read.head} · {read.relation} · {read.tail}", f"at {read.word} in sentence {read.sentence}", read.weight)
        for read in _top(word.triples or ())
    )
    empty = word.empty_graphs or 0.0
    nothing = f' <small class="none">no triple {empty:.2f}</small>' if empty >= _SMALLEST else ""
    return _chips("knowledge", chips) + nothing


def _chips(kind: str, reads: Iterable[tuple[str, str, float]]) -> str:
    chips = [
        f'<span class="read {kind}" style="--weight:{weight:.3f}" title="{escape(place)}" dir="auto">'
        f"{escape(text)} <small>{weight:.2f}</small></span>"
        for text, place, weight in reads
    ]
    return " ".join(chips) or "–"


def _top(reads: Sequence[Any]) -> list[Any]:
    return [read for read in reads[:_MAX_READS] if read.weight >= _SMALLEST]
