"""Evaluation: metrics of models and of endings by any system, with confidence intervals and significance tests."""

from typing import TYPE_CHECKING

from ..lazy import lazy_exports

if TYPE_CHECKING:
    from .ablation_results import Ablations
    from .ablations import ablate
    from .likelihood import cloze_accuracy
    from .loading import load_split, read_endings
    from .naming import name_systems
    from .options import EvaluateOptions, EvaluationOptions, ScoreOptions
    from .results import METRIC_TITLES, Evaluation, compare_in_table, save_evaluation
    from .run import endings_files, evaluate, evaluate_model, score
    from .scoring import EndingScorer, compare_with_baseline, score_endings
    from .trainer_metrics import ending_metrics, label_log_likelihoods

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "METRIC_TITLES": ".results",
        "Ablations": ".ablation_results",
        "EndingScorer": ".scoring",
        "EvaluateOptions": ".options",
        "Evaluation": ".results",
        "EvaluationOptions": ".options",
        "ScoreOptions": ".options",
        "ablate": ".ablations",
        "cloze_accuracy": ".likelihood",
        "compare_in_table": ".results",
        "compare_with_baseline": ".scoring",
        "ending_metrics": ".trainer_metrics",
        "endings_files": ".run",
        "evaluate": ".run",
        "evaluate_model": ".run",
        "label_log_likelihoods": ".trainer_metrics",
        "load_split": ".loading",
        "name_systems": ".naming",
        "read_endings": ".loading",
        "save_evaluation": ".results",
        "score": ".run",
        "score_endings": ".scoring",
    },
)
