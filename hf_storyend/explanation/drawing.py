"""What both pictures need of matplotlib, loaded when a picture is drawn."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from .result import Explanation

STATE_COLOR, KNOWLEDGE_COLOR = "#1a1a1a", "#2166ac"


def plot_library(name: str) -> Any:
    """A module of matplotlib."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError('Pictures need matplotlib. Install it with `pip install "hf_storyend[plots]"`.') from error


def new_figure(width: float, height: float, **settings: Any) -> Any:
    """A figure of its own, in inches, that can measure text: pyplot would look for a screen."""
    figure = plot_library("matplotlib.figure").Figure(figsize=(width, height), **settings)
    plot_library("matplotlib.backends.backend_agg").FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Any, path: Path) -> None:
    """Write a picture; in SVG, text stays text and the same picture is the same file."""
    settings = {"svg.fonttype": "none", "svg.hashsalt": "storyend"}
    metadata = {"Date": None} if path.suffix == ".svg" else None
    with plot_library("matplotlib").rc_context(settings):
        figure.savefig(path, dpi=150, metadata=metadata)


def plain(text: str) -> str:
    """Text as it is: dollar signs would start a formula."""
    return text.replace("$", r"\$")


def has_graph(explanation: Explanation, sentence: int, position: int) -> bool:
    """Whether a word of the story, both counted from 1, has triples."""
    return explanation.graphs is not None and bool(explanation.graphs[sentence - 1][position - 1])


def sentence_title(explanation: Explanation, number: int) -> str:
    """What pictures call a sentence."""
    return "ending" if number > len(explanation.sentences) else f"sentence {number}"
