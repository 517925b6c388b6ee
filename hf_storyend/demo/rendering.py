"""HTML of the demo's results: tables, the interactive page and pictures. All text of visitors is escaped."""

from __future__ import annotations

import tempfile
import warnings
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TypeVar

from ..explanation.markdown import EMPTY_ENDING, MIN_WEIGHT
from ..explanation.result import (
    Effect,
    EndingWord,
    Evidence,
    Explanation,
    SourceTriple,
    SourceWord,
    WeightedTriple,
    WeightedWord,
)
from ..explanation.snippet import highlighted_words
from ..explanation.wording import effect_text, percent
from .generator import GeneratedEndings

_MAX_WEIGHTS, _MAX_EVIDENCE = 3, 5
# One sentence on how to read the page.
READING = (
    'Words of an ending on <span class="source story">green</span> come from the story, on '
    '<span class="source knowledge">blue</span> from a triple of knowledge and all others from the vocabulary, '
    '<span class="source vocabulary partly">dotted</span> if not only from there: point at one, or tap it, to see '
    "from where."
)
# Stands where a page or a picture is being made.
PENDING = '<p class="waiting" role="status"><span class="turning" aria-hidden="true"></span>One moment …</p>'
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
    """
    Return an ending whose words are highlighted by source, with a button that copies it.

    With triples of the visitor, the first ending without them stands beside it.
    """
    explanation = generated.endings[number]
    shown = _ending_part(explanation)
    notes = "".join(f'<p class="note" dir="auto">{escape(line)}</p>' for line in generated.notes)
    if generated.without_triples is None:
        return shown + notes
    return (
        '<div class="beside">'
        f'<section class="before"><h3>Without your triples</h3>{_ending_part(generated.without_triples)}</section>'
        f'<section class="after"><h3>With your triples</h3>{shown}</section></div>'
        f"<p>{_change_text(generated.without_triples, explanation)}</p>{notes}"
    )


def _ending_part(explanation: Explanation) -> str:
    words = highlighted_words(explanation, "data-sources", focusable=True)
    text = escape(ending_text(explanation))
    button = f'<button type="button" class="copy" data-copy="{text}" aria-label="Copy the ending">Copy</button>'
    return f'<p class="ending" dir="auto">{words}</p><p class="tools">{button}</p>'


def _change_text(before: Explanation, after: Explanation) -> str:
    """Return whether the triples changed the ending."""
    if before.ending != after.ending:
        return "The ending changed with your triples."
    return "The same ending: your triples make their tails likelier, but not likelier than this."


def word_table_html(explanation: Explanation) -> str:
    """Return a table with a row for each word and what it came from, then the triples, the effects and the notes."""
    rows = "".join(_word_row(word) for word in explanation.words)
    notes = "".join(f"<li>{escape(note)}</li>" for note in explanation.notes)
    return (
        f"{_table_html('words', ('Word', 'Probability', 'Vocabulary', 'Story', 'Triples'), rows)}"
        f'<p class="sum">Log probability of the ending: {explanation.log_probability:.2f}.</p>'
        f'{_evidence_html(explanation)}{_effects_html(explanation)}<ul class="notes">{notes}</ul>'
    )


def _table_html(kind: str, columns: Sequence[str], rows: str) -> str:
    header = "".join(f'<th scope="col">{name}</th>' for name in columns)
    return f'<table class="{kind}"><thead><tr>{header}</tr></thead><tbody>{rows}</tbody></table>'


def _word_row(word: EndingWord) -> str:
    cells = {
        "Probability": f"{word.probability:.3f}",
        "Vocabulary": percent(word.sources.vocabulary),
        "Story": _chips("story", word.sources.story),
        "Triples": _chips("knowledge", word.sources.triples),
    }
    return _row(word.word, cells)


def _row(title: str, cells: Mapping[str, str]) -> str:
    # The label is for narrow screens, where cells stand below each other.
    shown = "".join(f'<td data-label="{name}">{cell}</td>' for name, cell in cells.items())
    return f'<tr><th scope="row" dir="auto">{escape(title)}</th>{shown}</tr>'


def _chips(kind: str, items: Sequence[SourceWord] | Sequence[SourceTriple]) -> str:
    chips = [
        f'<span class="weight {kind}" style="--weight:{item.share:.3f}" '
        f'title="{escape(f"at {item.word} in sentence {item.sentence}")}" dir="auto">'
        f"{escape(_short_name(item))} <small>{percent(item.share)}</small></span>"
        for item in items[:_MAX_WEIGHTS]
        if item.share >= MIN_WEIGHT
    ]
    return " ".join(chips) or "–"


def _short_name(item: SourceWord | SourceTriple) -> str:
    return " · ".join(item.triple) if isinstance(item, SourceTriple) else f"{item.word}, sentence {item.sentence}"


def _evidence_html(explanation: Explanation) -> str:
    """Return the triples that words came from, with shares and effects, or a sentence that there are none."""
    if not explanation.evidence:
        return "<p>No word of this ending came from a triple.</p>"
    rows = "".join(_evidence_row(item, explanation) for item in explanation.evidence[:_MAX_EVIDENCE])
    return _table_html("words evidence", ("Triple", "Gave the word", "Share of it", "Without it the ending is"), rows)


def _evidence_row(item: Evidence, explanation: Explanation) -> str:
    effect = explanation.effects.of_triple(item.triple)
    cells = {
        "Gave the word": escape(item.ending_word),
        "Share of it": percent(item.share),
        "Without it the ending is": "–" if effect is None else effect_text(effect),
    }
    return _row(" · ".join(item.triple), cells)


def _effects_html(explanation: Explanation) -> str:
    """Return how likely the ending is without all triples and without each sentence."""
    effects = explanation.effects
    named: list[tuple[str, Effect]] = [("all triples", effects.knowledge)] if effects.knowledge else []
    named += [(f"sentence {one.sentence}", one) for one in effects.sentences]
    if not named:
        return ""
    rows = "".join(_row(name, {"The ending is": effect_text(effect)}) for name, effect in named)
    return _table_html("words effects", ("Without", "The ending is"), rows)


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
    """Return the picture of clue links, like the paper's Figure 3; its caption says that they are attention."""
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
    # As an image, an SVG runs no scripts. Whole at first; a click makes it large enough to read on a phone, and keys
    # can scroll it then.
    return (
        f'<div class="picture" tabindex="0" role="group" aria-label="{escape(description)}">'
        f'<img src="data:image/svg+xml;base64,{picture}" alt="{escape(description)}"></div>'
        '<p class="tools"><button type="button" class="enlarge" aria-pressed="false">Enlarge</button></p>'
    )
