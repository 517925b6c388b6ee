"""Clue arrows: which word of a sentence led to which word of the one before it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .drawing import KNOWLEDGE_COLOR, STATE_COLOR, has_graph, new_figure, plain, save_figure, sentence_title
from .result import ClueLink, Explanation

# Points: at most so wide, at least so that the legend fits; then what stands between words and sentences.
_WIDTH, _LEGEND, _MARGIN, _SPACE, _LINE, _GAP, _FONT = 640, 500, 84, 9, 26, 44, 12
_COLORS = {"state": STATE_COLOR, "knowledge": KNOWLEDGE_COLOR}


@dataclass(frozen=True)
class _Box:
    """Where a word stands, in points from the top left."""

    left: float
    right: float
    y: float

    @property
    def middle(self) -> float:
        return (self.left + self.right) / 2


def draw_clues(explanation: Explanation, path: Path) -> None:
    """
    Write the sentences, one below the other, with arrows from clue words to what they read most, as a picture: black
    by states, blue by knowledge, the thicker the more weight. Words with triples are blue.
    """
    measure = new_figure(1, 1)
    boxes, height = _lay_out(explanation, measure)
    width = max(_LEGEND, max(box.right for box in boxes.values()) + 24)
    figure = new_figure(width / 72, height / 72)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    axes.axis("off")
    linked = {place for link in explanation.links for place in _ends(link)}
    for (number, position), box in boxes.items():
        _draw_word(axes, explanation, number, position, box, (number, position) in linked)
    for number in range(1, len(explanation.sentences) + 2):
        top = boxes[number, 1].y
        axes.text(14, top, sentence_title(explanation, number), fontsize=9, color="#777777", va="center")
    for link in explanation.links:
        _draw_link(axes, link, boxes)
    _draw_legend(axes, explanation, height)
    save_figure(figure, path)


def _lay_out(explanation: Explanation, figure: Any) -> tuple[dict[tuple[int, int], _Box], float]:
    """The place of every word, and the height of it all."""
    boxes = {}
    y = 26.0
    for number in range(1, len(explanation.sentences) + 2):
        x: float = _MARGIN
        for position, word in enumerate(explanation.words_of(number), start=1):
            width = _text_width(figure, word)
            if x + width > _WIDTH - 16 and x > _MARGIN:
                x, y = _MARGIN, y + _LINE
            boxes[number, position] = _Box(x, x + width, y)
            x += width + _SPACE
        y += _LINE + _GAP
    return boxes, y - _GAP + 24


def _text_width(figure: Any, word: str) -> float:
    text = figure.text(0, 0, plain(word), fontsize=_FONT)
    width = text.get_window_extent(figure.canvas.get_renderer()).width * 72 / figure.dpi
    text.remove()
    return width


def _draw_word(axes: Any, explanation: Explanation, number: int, position: int, box: _Box, is_linked: bool) -> None:
    is_story = number <= len(explanation.sentences)
    is_blue = is_story and has_graph(explanation, number, position)
    frame = {"boxstyle": "round,pad=0.25", "facecolor": "#fff7df", "edgecolor": "#c9a227", "linewidth": 0.9}
    axes.text(
        box.middle,
        box.y,
        plain(explanation.words_of(number)[position - 1]),
        fontsize=_FONT,
        ha="center",
        va="center",
        color=KNOWLEDGE_COLOR if is_blue else STATE_COLOR,
        bbox=frame if is_linked else None,
        zorder=3,
    )


def _draw_link(axes: Any, link: ClueLink, boxes: dict[tuple[int, int], _Box]) -> None:
    start, end = (boxes[place] for place in _ends(link))
    # Beside each other, where both kinds tie the same two words.
    shift = 3 if link.kind == "knowledge" else -3
    axes.annotate(
        "",
        xy=(end.middle + shift, end.y + 12),
        xytext=(start.middle + shift, start.y - 12),
        arrowprops={
            "arrowstyle": "-|>,head_width=0.22,head_length=0.45",
            "color": _COLORS[link.kind],
            "linewidth": 0.6 + 1.8 * link.weight,
            "shrinkA": 0,
            "shrinkB": 0,
            "alpha": 0.85,
        },
        zorder=2,
    )


def _ends(link: ClueLink) -> Iterator[tuple[int, int]]:
    yield link.reader, link.reader_position
    yield link.source, link.source_position


def _draw_legend(axes: Any, explanation: Explanation, height: float) -> None:
    axes.text(_MARGIN, height - 14, "→ read most by states", fontsize=9, color=STATE_COLOR, va="center")
    if explanation.graphs is not None:
        text = "→ read most by knowledge      words with triples are blue"
        axes.text(_MARGIN + 140, height - 14, text, fontsize=9, color=KNOWLEDGE_COLOR, va="center")
