"""An explanation as a piece of HTML, for notebooks: the ending with its words coloured by source. Text is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from .markdown import EMPTY_ENDING
from .result import EndingWord, Explanation, SourceTriple, SourceWord
from .wording import align_words, effect_text, percent, pointed_sources, source_name, source_text

# A source with a lower share is not named.
MIN_NAMED = 0.1
_MAX_NAMED, _MAX_ROWS = 3, 5
KEY = (
    '<span class="source vocabulary">vocabulary</span> <span class="source story">story</span> '
    '<span class="source knowledge">knowledge</span>'
)
# Colours that are readable on light and on dark pages: no text colour is set.
_STYLE = (
    ".storyend .source{border-radius:.3em;padding:0 .2em;cursor:help}"
    ".storyend .source.vocabulary{border-bottom:1px dotted #888;border-radius:0}"
    ".storyend .source.story{background:rgba(60,160,80,.3)}"
    ".storyend .source.knowledge{background:rgba(33,102,172,.3)}"
    ".storyend .ending{font-size:1.3em;font-weight:600;margin:.3em 0}"
    ".storyend table{border-collapse:collapse;margin:.6em 0}"
    ".storyend th,.storyend td{text-align:start;padding:.2em 1em .2em 0;border-bottom:1px solid #8884}"
)


def explanation_snippet(explanation: Explanation) -> str:
    """Return the ending, a row for each word that came from story or knowledge, and effects; no script, no links."""
    parts = [
        f"<style>{_STYLE}</style>",
        f"<p>{escape(' '.join(explanation.story))}</p>",
        f'<p class="ending">{highlighted_words(explanation, "title")}</p>',
    ]
    if explanation.has_sources:
        parts += [f"<p><small>Words by source: {KEY}; point at one.</small></p>", _source_table(explanation)]
    parts += [_effect_table(explanation)]
    return f'<div class="storyend">{"".join(parts)}</div>'


def highlighted_words(explanation: Explanation, attribute: str, *, focusable: bool = False) -> str:
    """
    Return the text of an ending with each word in an element of the class of its main source.

    Args:
        explanation: The explanation.
        attribute: Attribute that holds what the word came from: `title`, or another one that a style shows.
        focusable: Whether keys and taps can reach the words, too.
    """
    pieces = align_words(explanation.ending, [word.word for word in explanation.words])
    extra = ' tabindex="0"' if focusable else ""
    marked = [
        escape(piece)
        if place is None
        else f'<span class="source {_class_of(explanation.words[place])}"{extra} '
        f'{attribute}="{escape(describe_sources(explanation, explanation.words[place]))}">{escape(piece)}</span>'
        for piece, place in pieces
    ]
    return "".join(marked) or escape(EMPTY_ENDING)


def describe_sources(explanation: Explanation, word: EndingWord) -> str:
    """Return what a word came from, a line each: triples, places with their sentences, vocabulary."""
    lines = [_named(explanation, item) for item in pointed_sources(word.sources, MIN_NAMED)[:_MAX_NAMED]]
    if word.sources.vocabulary >= MIN_NAMED or not lines:
        lines.append(f"{percent(word.sources.vocabulary)} from the vocabulary")
    return "\n".join(lines)


def _class_of(word: EndingWord) -> str:
    """Return the main source, and whether a word of the vocabulary partly came from elsewhere."""
    is_partly = word.sources.main == "vocabulary" and bool(pointed_sources(word.sources, MIN_NAMED))
    return "vocabulary partly" if is_partly else word.sources.main


def _named(explanation: Explanation, item: SourceWord | SourceTriple) -> str:
    text = source_text(item)
    return text if isinstance(item, SourceTriple) else f"{text}: {explanation.story[item.sentence - 1]}"


def _source_table(explanation: Explanation) -> str:
    rows = [
        (word.word, ", ".join(f"{source_name(item)} {percent(item.share)}" for item in named))
        for word in explanation.words
        if (named := pointed_sources(word.sources, MIN_NAMED)[:_MAX_NAMED])
    ]
    return _table(("Word", "Came from"), rows) if rows else "<p>All words came from the vocabulary.</p>"


def _effect_table(explanation: Explanation) -> str:
    effects = explanation.effects
    rows = [
        (" ".join(item.triple), effect_text(effect))
        for item in explanation.evidence[:_MAX_ROWS]
        if (effect := effects.of_triple(item.triple)) is not None
    ]
    rows += [("all triples", effect_text(effects.knowledge))] if effects.knowledge else []
    rows += [(f"sentence {one.sentence}", effect_text(one)) for one in effects.sentences]
    return _table(("Without", "The ending is"), list(dict.fromkeys(rows))) if rows else ""


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    header = "".join(f"<th>{name}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>"
