"""Numbers about story endings: those of a model, and those that any system wrote."""

from .cloze import cloze_accuracy
from .evaluate import evaluate
from .options import EvaluationOptions
from .program import evaluate_pretrained, score_files
from .result import METRIC_TITLES, Evaluation, compare_in_table
from .saving import save_evaluation
from .scoring import EndingScorer, compare_with_baseline, score_endings
from .sources import load_split, read_endings

__all__ = [
    "METRIC_TITLES",
    "EndingScorer",
    "Evaluation",
    "EvaluationOptions",
    "cloze_accuracy",
    "compare_in_table",
    "compare_with_baseline",
    "evaluate",
    "evaluate_pretrained",
    "load_split",
    "read_endings",
    "save_evaluation",
    "score_endings",
    "score_files",
]
