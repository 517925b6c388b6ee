"""The grid of attention matrices: states in green, knowledge in blue, words on the axes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .drawing import has_graph, new_figure, plain, save_figure, sentence_title
from .result import AttentionMatrix, Explanation

_COLOR_MAPS = {"state": "Greens", "knowledge": "Blues"}
_DARK, _GREY, _FADED = "#1a1a1a", "#555555", "#a8a8a8"
# Inches: a cell, and what stands around the matrices. Cells are the same size everywhere.
_CELL, _BESIDE, _BELOW, _TOP, _BAR = 0.27, 1.2, 1.15, 0.75, 0.3
_MAX_LABEL = 14


def draw_attention(explanation: Explanation, path: Path) -> None:
    """
    Write a matrix for every two sentences of which one reads the other, as a picture: the sentence that is read from
    top to bottom, the reader from left to right. Words without triples are grey where knowledge is read.
    """
    kinds = list(dict.fromkeys(matrix.kind for matrix in explanation.attentions))
    pairs = list(dict.fromkeys((matrix.reader, matrix.source) for matrix in explanation.attentions))
    column_width = _BESIDE + _CELL * max(8, *(len(explanation.words_of(reader)) for reader, _ in pairs))
    heights = [_CELL * len(explanation.words_of(source)) + _BELOW for _, source in pairs]
    width, height = column_width * len(kinds) + 0.25, _TOP + sum(heights) + _BAR
    figure = new_figure(width, height)
    for matrix in explanation.attentions:
        column, row = kinds.index(matrix.kind), pairs.index((matrix.reader, matrix.source))
        num_rows, num_columns = len(matrix.weights[0]), len(matrix.weights)
        left, top = column * column_width + _BESIDE, _TOP + sum(heights[:row])
        place = (left, height - top - num_rows * _CELL, num_columns * _CELL, num_rows * _CELL)
        _draw_matrix(_add_axes(figure, place), explanation, matrix)
    for column, kind in enumerate(kinds):
        left = column * column_width + _BESIDE
        figure.text(left / width, 1 - 0.3 / height, f"{kind} attention", fontsize=12, fontweight="bold")
        _draw_scale(_add_axes(figure, (left, 0.35, 8 * _CELL, 0.1)), kind)
    save_figure(figure, path)


def _add_axes(figure: Any, place: tuple[float, float, float, float]) -> Any:
    """Axes at left, bottom, width and height in inches."""
    width, height = figure.get_size_inches()
    return figure.add_axes((place[0] / width, place[1] / height, place[2] / width, place[3] / height))


def _draw_matrix(axes: Any, explanation: Explanation, matrix: AttentionMatrix) -> None:
    columns = list(zip(*matrix.weights, strict=True))
    axes.imshow(columns, cmap=_COLOR_MAPS[matrix.kind], vmin=0, vmax=1, aspect="auto")
    sources, readers = ([_label(word) for word in explanation.words_of(n)] for n in (matrix.source, matrix.reader))
    axes.set_yticks(range(len(sources)), sources, fontsize=9)
    axes.set_xticks(range(len(readers)), readers, fontsize=9, rotation=55, ha="right", rotation_mode="anchor")
    reader, source = (sentence_title(explanation, number) for number in (matrix.reader, matrix.source))
    axes.set_title(f"{reader} reads {source}", fontsize=9, loc="left", color=_GREY)
    _draw_lines(axes, len(readers), len(sources))
    if matrix.kind == "knowledge":
        for position, label in enumerate(axes.get_yticklabels(), start=1):
            label.set_color(_DARK if has_graph(explanation, matrix.source, position) else _FADED)


def _label(word: str) -> str:
    """A word such that it fits beside a matrix."""
    return plain(word if len(word) <= _MAX_LABEL else word[: _MAX_LABEL - 1] + "…")


def _draw_lines(axes: Any, num_columns: int, num_rows: int) -> None:
    """Fine lines between the cells."""
    axes.set_xticks([place - 0.5 for place in range(1, num_columns)], minor=True)
    axes.set_yticks([place - 0.5 for place in range(1, num_rows)], minor=True)
    axes.grid(which="minor", color="#e8e8e8", linewidth=0.6)
    axes.tick_params(which="both", length=0)
    axes.spines[:].set_color("#bbbbbb")


def _draw_scale(axes: Any, kind: str) -> None:
    """What the colours mean, from 0 to 1."""
    axes.imshow([[step / 255 for step in range(256)]], cmap=_COLOR_MAPS[kind], vmin=0, vmax=1, aspect="auto")
    axes.set_xticks([0, 127.5, 255], ["0", "0.5", "1"], fontsize=8)
    axes.set_yticks([])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
