"""Options of training runs: checks and conversions."""

import subprocess
import sys

import pytest

from hf_storyend.training import TrainingOptions


def test_trackers_are_given_by_name():
    assert TrainingOptions(report_to="tensorboard, wandb").trackers == ["tensorboard", "wandb"]
    assert TrainingOptions().trackers == []


@pytest.mark.parametrize(
    ("metric", "value", "best", "expected"),
    [
        ("perplexity", 2.0, 3.0, True),
        ("perplexity", 3.0, 3.0, False),
        ("bleu_1", 2.0, 3.0, False),
        ("bleu_1", 4.0, 3.0, True),
        ("bleu_1", 4.0, None, True),
        ("perplexity", float("nan"), None, False),
        ("perplexity", float("nan"), 3.0, False),
    ],
)
def test_the_metric_decides_what_is_better(metric, value, best, expected):
    assert TrainingOptions(metric_for_best_model=metric).is_better(value, best) is expected


def test_unknown_metrics_are_refused():
    with pytest.raises(ValueError, match="`metric_for_best_model` must be one of perplexity"):
        TrainingOptions(metric_for_best_model="beauty")


def test_options_are_imported_without_torch():
    code = (
        "import sys, hf_storyend.training.options; print(sorted({'torch', 'transformers', 'yaml'} & set(sys.modules)))"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "[]"
