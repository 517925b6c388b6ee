"""Ending ranker: rank endings, and train a ranker from candidates that a teacher scored."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["rank"]


def rank(story: str | Sequence[str], endings: Sequence[str], model: str | Path | None = None) -> list[dict[str, Any]]:
    """
    Return the endings of a story, the best first: `ending`, `score` and `log_probability`.

    The score is that of the model's ending ranker or, if it has none, the log probability of the ending.

    Args:
        story: One string, or a list of sentences.
        endings: The endings to choose among.
        model: Model directory or Hub name; default: the model that comes with the package.
    """
    from ..modeling.candidates import rank_endings
    from ..pretrained import load

    network, tokenizer = load(model)
    return rank_endings(network, tokenizer, story, endings)
