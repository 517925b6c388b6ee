"""Why this ending: what its words read, the clues behind them, and what changes with the story."""

from .counterfactual import Counterfactual, counterfactual
from .explain import explain
from .page import FORMATS, check_formats, save_counterfactual, save_explanation
from .result import (
    AttentionMatrix,
    ClueLink,
    EndingWord,
    Explanation,
    GraphTriple,
    ReadTriple,
    ReadWord,
    SentenceClues,
)

__all__ = [
    "FORMATS",
    "AttentionMatrix",
    "ClueLink",
    "Counterfactual",
    "EndingWord",
    "Explanation",
    "GraphTriple",
    "ReadTriple",
    "ReadWord",
    "SentenceClues",
    "check_formats",
    "counterfactual",
    "explain",
    "save_counterfactual",
    "save_explanation",
]
