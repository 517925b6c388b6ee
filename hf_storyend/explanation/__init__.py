"""Explain an ending: what its words came from, effects, attentions, clues in the story, counterfactual changes."""

from typing import TYPE_CHECKING

from ..lazy import lazy_exports

if TYPE_CHECKING:
    from .counterfactuals import Counterfactual, counterfactual
    from .effects import effects
    from .explain_story import explain
    from .files import save_counterfactual, save_explanation
    from .options import ExplainOptions
    from .result import (
        AttentionMatrix,
        ClueLink,
        Effect,
        Effects,
        EndingWord,
        Evidence,
        Explanation,
        GraphTriple,
        SentenceClues,
        SentenceEffect,
        Sources,
        SourceTriple,
        SourceWord,
        TripleEffect,
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
        "Effect": ".result",
        "Effects": ".result",
        "EndingWord": ".result",
        "Evidence": ".result",
        "ExplainOptions": ".options",
        "Explanation": ".result",
        "GraphTriple": ".result",
        "SentenceClues": ".result",
        "SentenceEffect": ".result",
        "SourceTriple": ".result",
        "SourceWord": ".result",
        "Sources": ".result",
        "TripleEffect": ".result",
        "WeightedTriple": ".result",
        "WeightedWord": ".result",
        "counterfactual": ".counterfactuals",
        "effects": ".effects",
        "explain": ".explain_story",
        "explain_with_options": ".run",
        "save_counterfactual": ".files",
        "save_explanation": ".files",
    },
)
