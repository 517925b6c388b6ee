"""HTML of the demo's results: tables, the interactive page and pictures. All text of visitors is escaped."""

from __future__ import annotations

import tempfile
import warnings
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from html import escape
from pathlib import Path
from typing import TypeVar

from ..explanation.markdown import EMPTY_ENDING, MIN_WEIGHT
from ..explanation.result import EndingWord, Explanation, WeightedTriple, WeightedWord
from .generator import GeneratedEndings

_MAX_WEIGHTS = 3
_CLUES = "The story's sentences and the ending, with arrows from clue words to the words of their highest attention"
_ATTENTION = "Attention matrices: state attention and knowledge attention of each sentence to the one before it"
_Weighted = TypeVar("_Weighted", WeightedWord, WeightedTriple)


def message_html(text: str) -> str:
    """Return an error message."""
    return f'<p class="problem" role="alert">{escape(text)}</p>'


def ending_text(explanation: Explanation) -> str:
    """Return the ending as text."""
    return explanation.ending or EMPTY_ENDING


def ending_html(generated: GeneratedEndings, number: int) -> str:
    """Return an ending and, with the first one, the ending without the visitor's triples, if there are any."""
    parts = [f'<p class="ending" dir="auto">{escape(ending_text(generated.endings[number]))}</p>']
    if generated.without_triples is not None and number == 0:
        before = escape(generated.without_triples or EMPTY_ENDING)
        parts.append(f'<p class="before">Without your triples: <q dir="auto">{before}</q></p>')
    return "".join(parts)


def word_table_html(explanation: Explanation) -> str:
    """Return a table with a row for each word: its probability and its highest attentions."""
    columns = _columns(explanation)
    header = "".join(f'<th scope="col">{name}</th>' for name in ("Word", *columns))
    rows = "".join(_row(word, columns) for word in explanation.words)
    notes = "".join(f"<li>{escape(note)}</li>" for note in explanation.notes)
    return (
        f'<table class="words"><thead><tr>{header}</tr></thead><tbody>{rows}</tbody></table>'
        f'<p class="sum">Log probability of the ending: {explanation.log_probability:.2f}.</p>'
        f'<ul class="notes">{notes}</ul>'
    )


def _columns(explanation: Explanation) -> dict[str, Callable[[EndingWord], str]]:
    columns: dict[str, Callable[[EndingWord], str]] = {
        "Probability": lambda word: f"{word.probability:.3f}",
        "Attention to words": lambda word: _words(word.state_attention),
    }
    if explanation.graphs is not None:
        columns["Attention to triples"] = _triples
    if explanation.system["copy"]:
        columns["Copied from"] = lambda word: _words(word.copied or ())
    return columns


def _row(word: EndingWord, columns: dict[str, Callable[[EndingWord], str]]) -> str:
    # The label is for narrow screens, where cells stand below each other.
    cells = "".join(f'<td data-label="{name}">{cell(word)}</td>' for name, cell in columns.items())
    return f'<tr><th scope="row" dir="auto">{escape(word.word)}</th>{cells}</tr>'


def _words(words: Sequence[WeightedWord]) -> str:
    return _chips("state", ((word.word, f"sentence {word.sentence}", word.weight) for word in highest(words)))


def _triples(word: EndingWord) -> str:
    chips = (
        (f"{read.head} · {read.relation} · {read.tail}", f"at {read.word} in sentence {read.sentence}", read.weight)
        for read in highest(word.triple_attention or ())
    )
    empty = word.empty_graph_attention or 0.0
    without = f' <small class="none">no triple {empty:.2f}</small>' if empty >= MIN_WEIGHT else ""
    return _chips("knowledge", chips) + without


def _chips(kind: str, weighted: Iterable[tuple[str, str, float]]) -> str:
    chips = [
        f'<span class="weight {kind}" style="--weight:{weight:.3f}" title="{escape(place)}" dir="auto">'
        f"{escape(text)} <small>{weight:.2f}</small></span>"
        for text, place, weight in weighted
    ]
    return " ".join(chips) or "–"


def highest(weighted: Sequence[_Weighted]) -> list[_Weighted]:
    """Return the first few, which have the highest weights, as far as two digits tell them from 0."""
    return [item for item in weighted[:_MAX_WEIGHTS] if item.weight >= MIN_WEIGHT]


def page_html(explanation: Explanation) -> str:
    """Return the interactive page in a sandboxed frame, which runs the page's script and reaches nothing outside."""
    page = escape(explanation.to_html(), quote=True)
    # The height of a sandboxed frame can't be measured; if the estimate is too low, the frame scrolls.
    sentences = [*explanation.sentences, [word.word for word in explanation.words]]
    num_lines = sum(1 + sum(len(word) + 2 for word in words) // 36 for words in sentences)
    return (
        '<iframe class="page" sandbox="allow-scripts" title="Attention of each word of story and ending" '
        f'style="height:{44 + 4 * num_lines}rem" srcdoc="{page}"></iframe>'
    )


def clues_html(explanation: Explanation) -> str:
    """Return the picture of clue links, like the paper's Figure 3."""
    return _picture_html(explanation.draw_clues, _CLUES)


def attention_html(explanation: Explanation) -> str:
    """Return the picture of the attention matrices, like the paper's Figure 5."""
    return _picture_html(explanation.draw_attention, _ATTENTION)


def ignore_missing_glyphs() -> None:
    """Silence matplotlib's warnings of missing glyphs: text in an SVG stays text, which the browser draws."""
    warnings.filterwarnings("ignore", message="Glyph .* missing from font")


def _picture_html(draw: Callable[[Path], None], description: str) -> str:
    with tempfile.TemporaryDirectory(prefix="storyend-") as directory:
        path = Path(directory) / "picture.svg"
        draw(path)
        picture = b64encode(path.read_bytes()).decode()
    # As an image, an SVG runs no scripts. Focusable, so that keys can scroll it where it is wider than the screen.
    return (
        f'<div class="picture" tabindex="0" role="group" aria-label="{escape(description)}">'
        f'<img src="data:image/svg+xml;base64,{picture}" alt="{escape(description)}"></div>'
    )
