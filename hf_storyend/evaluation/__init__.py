"""Numbers about story endings: those of a model, and those that any system wrote."""

from .evaluate import evaluate, evaluate_pretrained, score_files
from .options import EvaluationOptions
from .results import METRIC_TITLES, Evaluation, compare_in_table, save_evaluation
from .scoring import EndingScorer, compare_with_baseline, load_split, read_endings, score_endings
from .story_cloze import cloze_accuracy

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
