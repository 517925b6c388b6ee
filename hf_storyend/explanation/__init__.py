"""Explain an ending: attentions of its words, clues in the story, and counterfactual changes."""

from typing import TYPE_CHECKING

from ..lazy import lazy_exports

if TYPE_CHECKING:
    from .counterfactuals import Counterfactual, counterfactual
    from .explain_story import explain
    from .files import save_counterfactual, save_explanation
    from .options import ExplainOptions
    from .result import (
        AttentionMatrix,
        ClueLink,
        EndingWord,
        Explanation,
        GraphTriple,
        SentenceClues,
        WeightedTriple,
        WeightedWord,
    )
    from .run import explain_with_options

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "AttentionMatrix": ".result",
        "ClueLink": ".result",
        "Counterfactual": ".counterfactuals",
        "EndingWord": ".result",
        "ExplainOptions": ".options",
        "Explanation": ".result",
        "GraphTriple": ".result",
        "SentenceClues": ".result",
        "WeightedTriple": ".result",
        "WeightedWord": ".result",
        "counterfactual": ".counterfactuals",
        "explain": ".explain_story",
        "explain_with_options": ".run",
        "save_counterfactual": ".files",
        "save_explanation": ".files",
    },
)
