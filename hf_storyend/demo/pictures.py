"""The pictures of an explanation as SVG text."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

from ..explanation.result import Explanation


def clues_picture(explanation: Explanation) -> bytes:
    """Arrows between the words of sentences, as in the paper's Figure 3."""
    return _drawn(explanation.draw_clues)


def attention_picture(explanation: Explanation) -> bytes:
    """All attention matrices, as in the paper's Figure 5."""
    return _drawn(explanation.draw_attention)


def ignore_missing_glyphs() -> None:
    """Letters that matplotlib's font lacks are drawn by the browser: text in an SVG stays text."""
    warnings.filterwarnings("ignore", message="Glyph .* missing from font")


def _drawn(draw: Callable[[Path], None]) -> bytes:
    with tempfile.TemporaryDirectory(prefix="storyend-") as folder:
        path = Path(folder) / "picture.svg"
        draw(path)
        return path.read_bytes()
