"""
Pictures of an explanation: what words came from, the attention matrices, and the clue links between sentences.

They need matplotlib.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .result import AttentionMatrix, ClueLink, EndingWord, Explanation
from .wording import pointed_sources, source_name

_DARK, _GREY, _FADED, _BLUE = "#1a1a1a", "#555555", "#a8a8a8", "#2166ac"
_COLOR_MAPS = {"state": "Greens", "knowledge": "Blues"}
_LINK_COLORS = {"state": _DARK, "knowledge": _BLUE}
# Attention matrices, in inches: a cell, the same size everywhere, and the space around the matrices.
_CELL, _BESIDE, _BELOW, _TOP, _BAR = 0.27, 1.2, 1.15, 0.75, 0.3
_MAX_LABEL = 14
# Clue links, in points: maximum width, width of the legend, then the space between words and sentences.
_WIDTH, _LEGEND, _MARGIN, _SPACE, _LINE, _GAP, _FONT = 640, 500, 84, 9, 26, 44, 12
_CAPTION = "Arrows are attention: where the model looked, not what a word came from."
# Sources, in inches: a bar, its row, the labels and the bars.
_BAR_HEIGHT, _ROW, _LABELS, _BARS, _NAMES = 0.2, 0.32, 1.3, 3.4, 3.0
_SOURCE_COLORS = {"vocabulary": "#d9d9d9", "story": "#5aa36b", "knowledge": _BLUE}
# A source with a lower share is not named beside the bar.
_MIN_NAMED = 0.1


def draw_sources(explanation: Explanation, path: Path) -> None:
    """
    Draw a bar for each word of the ending: the shares of its probability from vocabulary, story and triples.

    The place or triple with the highest share is named beside the bar.
    """
    words = explanation.words
    width, height = _LABELS + _BARS + _NAMES, 0.75 + _ROW * len(words)
    figure = _new_figure(width, height)
    axes = _add_axes(figure, (_LABELS, 0.6, _BARS, _ROW * len(words)))
    for row, word in enumerate(words):
        _draw_bar(axes, row, word)
    axes.set_xlim(0, 1)
    axes.set_ylim(len(words) - 0.5, -0.5)
    axes.set_yticks(range(len(words)), [_shorten(word.word) for word in words], fontsize=10)
    axes.set_xticks([0, 0.5, 1], ["0", "50 %", "100 %"], fontsize=8)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    for place, (kind, color) in enumerate(_SOURCE_COLORS.items()):
        left = _LABELS + 1.2 * place
        figure.text(left / width, 0.12 / height, "■", fontsize=9, color=color)
        figure.text((left + 0.15) / width, 0.12 / height, kind, fontsize=9, color=_GREY)
    _save_figure(figure, path)


def _draw_bar(axes: Any, row: int, word: EndingWord) -> None:
    left = 0.0
    for kind, share in word.sources.totals().items():
        axes.barh(row, share, left=left, height=_BAR_HEIGHT / _ROW, color=_SOURCE_COLORS[kind])
        left += share
    if named := pointed_sources(word.sources, _MIN_NAMED):
        axes.text(1.03, row, _escape(source_name(named[0])), fontsize=9, color=_GREY, va="center")


def draw_attention(explanation: Explanation, path: Path) -> None:
    """
    Draw a matrix for every pair of sentences of which one attends to the other.

    Keys run from top to bottom, queries from left to right. Keys without triples are grey in knowledge attention.
    """
    kinds = list(dict.fromkeys(matrix.kind for matrix in explanation.attentions))
    pairs = list(dict.fromkeys((matrix.query_sentence, matrix.key_sentence) for matrix in explanation.attentions))
    column_width = _BESIDE + _CELL * max(8, *(len(explanation.words_of(query)) for query, _ in pairs))
    heights = [_CELL * len(explanation.words_of(key)) + _BELOW for _, key in pairs]
    width, height = column_width * len(kinds) + 0.25, _TOP + sum(heights) + _BAR
    figure = _new_figure(width, height)
    for matrix in explanation.attentions:
        column, row = kinds.index(matrix.kind), pairs.index((matrix.query_sentence, matrix.key_sentence))
        num_rows, num_columns = len(matrix.weights[0]), len(matrix.weights)
        left, top = column * column_width + _BESIDE, _TOP + sum(heights[:row])
        place = (left, height - top - num_rows * _CELL, num_columns * _CELL, num_rows * _CELL)
        _draw_matrix(_add_axes(figure, place), explanation, matrix)
    for column, kind in enumerate(kinds):
        left = column * column_width + _BESIDE
        figure.text(left / width, 1 - 0.3 / height, f"{kind} attention", fontsize=12, fontweight="bold")
        _draw_scale(_add_axes(figure, (left, 0.35, 8 * _CELL, 0.1)), kind)
    _save_figure(figure, path)


def _add_axes(figure: Any, place: tuple[float, float, float, float]) -> Any:
    """Add axes at left, bottom, width and height in inches."""
    width, height = figure.get_size_inches()
    return figure.add_axes((place[0] / width, place[1] / height, place[2] / width, place[3] / height))


def _draw_matrix(axes: Any, explanation: Explanation, matrix: AttentionMatrix) -> None:
    columns = list(zip(*matrix.weights, strict=True))
    axes.imshow(columns, cmap=_COLOR_MAPS[matrix.kind], vmin=0, vmax=1, aspect="auto")
    keys, queries = (
        [_shorten(word) for word in explanation.words_of(number)]
        for number in (matrix.key_sentence, matrix.query_sentence)
    )
    axes.set_yticks(range(len(keys)), keys, fontsize=9)
    axes.set_xticks(range(len(queries)), queries, fontsize=9, rotation=55, ha="right", rotation_mode="anchor")
    query, key = (_title(explanation, number) for number in (matrix.query_sentence, matrix.key_sentence))
    axes.set_title(f"{query} attends to {key}", fontsize=9, loc="left", color=_GREY)
    _draw_grid(axes, len(queries), len(keys))
    if matrix.kind == "knowledge":
        for position, label in enumerate(axes.get_yticklabels(), start=1):
            label.set_color(_DARK if explanation.has_triples(matrix.key_sentence, position) else _FADED)


def _shorten(word: str) -> str:
    """Cut a word that is too long for the space beside a matrix."""
    return _escape(word if len(word) <= _MAX_LABEL else word[: _MAX_LABEL - 1] + "…")


def _draw_grid(axes: Any, num_columns: int, num_rows: int) -> None:
    """Draw fine lines between the cells."""
    axes.set_xticks([place - 0.5 for place in range(1, num_columns)], minor=True)
    axes.set_yticks([place - 0.5 for place in range(1, num_rows)], minor=True)
    axes.grid(which="minor", color="#e8e8e8", linewidth=0.6)
    axes.tick_params(which="both", length=0)
    axes.spines[:].set_color("#bbbbbb")


def _draw_scale(axes: Any, kind: str) -> None:
    """Draw the colour bar, from 0 to 1."""
    axes.imshow([[step / 255 for step in range(256)]], cmap=_COLOR_MAPS[kind], vmin=0, vmax=1, aspect="auto")
    axes.set_xticks([0, 127.5, 255], ["0", "0.5", "1"], fontsize=8)
    axes.set_yticks([])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


@dataclass(frozen=True)
class _Box:
    """Position of a word, in points from the top left."""

    left: float
    right: float
    y: float

    @property
    def middle(self) -> float:
        return (self.left + self.right) / 2


def draw_clues(explanation: Explanation, path: Path) -> None:
    """
    Draw the sentences below each other, with an arrow for each clue link.

    Arrows are black for state attention, blue for knowledge attention, and thicker for a higher weight. Words with
    triples are blue.
    """
    boxes, height = _lay_out(explanation, _new_figure(1, 1))
    width = max(_LEGEND, max(box.right for box in boxes.values()) + 24)
    figure = _new_figure(width / 72, height / 72)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    axes.axis("off")
    linked = {place for link in explanation.links for place in _ends(link)}
    for (number, position), box in boxes.items():
        _draw_word(axes, explanation, number, position, box, (number, position) in linked)
    for number in range(1, len(explanation.sentences) + 2):
        top = boxes[number, 1].y
        axes.text(14, top, _title(explanation, number), fontsize=9, color="#777777", va="center")
    for link in explanation.links:
        _draw_link(axes, link, boxes)
    _draw_legend(axes, explanation, height)
    _save_figure(figure, path)


def _lay_out(explanation: Explanation, figure: Any) -> tuple[dict[tuple[int, int], _Box], float]:
    """Return the position of every word, and the height of the picture."""
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
    return boxes, y - _GAP + 40


def _text_width(figure: Any, word: str) -> float:
    text = figure.text(0, 0, _escape(word), fontsize=_FONT)
    width = text.get_window_extent(figure.canvas.get_renderer()).width * 72 / figure.dpi
    text.remove()
    return width


def _draw_word(axes: Any, explanation: Explanation, number: int, position: int, box: _Box, is_linked: bool) -> None:
    is_blue = number <= len(explanation.sentences) and explanation.has_triples(number, position)
    frame = {"boxstyle": "round,pad=0.25", "facecolor": "#fff7df", "edgecolor": "#c9a227", "linewidth": 0.9}
    axes.text(
        box.middle,
        box.y,
        _escape(explanation.words_of(number)[position - 1]),
        fontsize=_FONT,
        ha="center",
        va="center",
        color=_BLUE if is_blue else _DARK,
        bbox=frame if is_linked else None,
        zorder=3,
    )


def _draw_link(axes: Any, link: ClueLink, boxes: dict[tuple[int, int], _Box]) -> None:
    start, end = (boxes[place] for place in _ends(link))
    # Side by side, where both kinds link the same two words.
    shift = 3 if link.kind == "knowledge" else -3
    axes.annotate(
        "",
        xy=(end.middle + shift, end.y + 12),
        xytext=(start.middle + shift, start.y - 12),
        arrowprops={
            "arrowstyle": "-|>,head_width=0.22,head_length=0.45",
            "color": _LINK_COLORS[link.kind],
            "linewidth": 0.6 + 1.8 * link.weight,
            "shrinkA": 0,
            "shrinkB": 0,
            "alpha": 0.85,
        },
        zorder=2,
    )


def _ends(link: ClueLink) -> Iterator[tuple[int, int]]:
    yield link.query_sentence, link.query_position
    yield link.key_sentence, link.key_position


def _draw_legend(axes: Any, explanation: Explanation, height: float) -> None:
    kinds = ["→ knowledge attention"] if explanation.has_knowledge_attention else []
    kinds += ["words with triples are blue"] if explanation.graphs is not None else []
    axes.text(_MARGIN, height - 30, "→ state attention", fontsize=9, color=_DARK, va="center")
    axes.text(_MARGIN + 140, height - 30, "      ".join(kinds), fontsize=9, color=_BLUE, va="center")
    axes.text(_MARGIN, height - 14, _CAPTION, fontsize=9, color=_GREY, va="center")


def _title(explanation: Explanation, number: int) -> str:
    return "ending" if number > len(explanation.sentences) else f"sentence {number}"


def _escape(text: str) -> str:
    """Escape dollar signs, which would start a formula."""
    return text.replace("$", r"\$")


def _new_figure(width: float, height: float) -> Any:
    """Return a figure, in inches, that can measure text; pyplot would look for a display."""
    figure = import_matplotlib("matplotlib.figure").Figure(figsize=(width, height))
    import_matplotlib("matplotlib.backends.backend_agg").FigureCanvasAgg(figure)
    return figure


def _save_figure(figure: Any, path: Path) -> None:
    """Write a picture; in SVG, text stays text, and the same picture is the same file."""
    settings = {"svg.fonttype": "none", "svg.hashsalt": "storyend"}
    metadata = {"Date": None} if path.suffix == ".svg" else None
    with import_matplotlib("matplotlib").rc_context(settings):
        figure.savefig(path, dpi=150, metadata=metadata)


def import_matplotlib(name: str) -> Any:
    """Import a module of matplotlib, an optional dependency."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError('Pictures need matplotlib. Install it with `pip install "hf_storyend[plots]"`.') from error
