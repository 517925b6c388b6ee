"""Options are checked, and the settings of the metrics follow from those of the commands."""

import pytest

from hf_storyend.evaluation.options import EvaluateOptions, EvaluationOptions, ScoreOptions


@pytest.mark.parametrize(
    ("options", "name", "value", "smallest"),
    [
        (EvaluationOptions, "batch_size", 0, 1),
        (EvaluationOptions, "num_sampled_classes", 0, 1),
        (EvaluationOptions, "max_stories", 0, 1),
        (EvaluationOptions, "num_seeds", -1, 0),
        (EvaluationOptions, "bootstrap_samples", True, 0),
        (EvaluateOptions, "num_beams", 0, 1),
        (EvaluateOptions, "batch_size", 1.5, 1),
        (EvaluateOptions, "no_repeat_ngram_size", -1, 0),
        (ScoreOptions, "max_stories", 0, 1),
    ],
)
def test_numbers_out_of_range_are_refused(options, name, value, smallest):
    with pytest.raises(ValueError, match=f"`{name}` must be a whole number of at least {smallest}; got {value}"):
        options(**{name: value})


def test_only_given_generation_options_are_passed_on():
    assert EvaluateOptions().evaluation_options().generation == {}
    options = EvaluateOptions(num_beams=4, no_repeat_ngram_size=0, max_stories=3, seed=2)
    settings = EvaluationOptions(
        generation={"num_beams": 4, "no_repeat_ngram_size": 0},
        max_stories=3,
        seed=2,
        bootstrap_samples=1000,
    )
    assert options.evaluation_options() == settings
