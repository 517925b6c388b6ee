"""Confidence intervals have the right width, and tests find differences where there are any."""

import builtins

import numpy as np
import pytest

from hf_storyend.evaluation.significance import compare_bleu, compare_ratios, ratio_intervals
from hf_storyend.evaluation.text_metrics import Ratio, mean_of

REFERENCES = [f"word{row} was here with me today ." for row in range(60)]
GOOD = [f"word{row} was here ." for row in range(60)]
BAD = [f"other{row} came by ." for row in range(60)]


def test_ratio_intervals_have_the_width_of_a_normal_approximation():
    values = np.random.default_rng(0).normal(10, 2, size=400)
    low, high = ratio_intervals({"length": mean_of(values)}, 2000)["length"]
    assert (high - low) / 2 == pytest.approx(1.96 * values.std() / 20, rel=0.1)
    assert (low + high) / 2 == pytest.approx(values.mean(), abs=0.05)


def test_intervals_of_ratios_of_sums_resample_stories_not_words():
    losses, num_words = np.array([2.0, 40.0] * 50), np.array([1.0, 10.0] * 50)
    low, high = ratio_intervals({"perplexity": Ratio(losses, num_words, is_logarithm=True)}, 500)["perplexity"]
    assert low < np.exp(42 / 11) < high


def test_intervals_are_reproducible():
    ratio = {"x": mean_of(list(range(20)))}
    assert ratio_intervals(ratio, 200, seed=1) == ratio_intervals(ratio, 200, seed=1)
    assert ratio_intervals(ratio, 200, seed=1) != ratio_intervals(ratio, 200, seed=2)


def test_a_difference_is_found():
    results = compare_bleu(GOOD, BAD, REFERENCES, 200)
    assert results["bleu_1"]["p_value"] == pytest.approx(1 / 201)
    own, other = mean_of([1.0] * 60), mean_of([0.0] * 30 + [1.0] * 30)
    assert compare_ratios({"x": own}, {"x": other}, 300)["x"] == {"baseline": 0.5, "p_value": pytest.approx(2 / 301)}


def test_equal_scores_are_no_difference():
    results = compare_bleu(GOOD, [ending.upper() for ending in GOOD], REFERENCES, 100)
    assert results["bleu_1"]["p_value"] == 1.0
    assert results["bleu_1_cased"]["p_value"] < 0.05
    same = mean_of(np.random.default_rng(0).random(50))
    assert compare_ratios({"x": same}, {"x": same}, 100)["x"]["p_value"] == 1.0


def test_random_differences_are_seldom_significant():
    rng = np.random.default_rng(0)
    p_values = []
    for _ in range(60):
        first, second = mean_of(rng.random(40)), mean_of(rng.random(40))
        p_values.append(compare_ratios({"x": first}, {"x": second}, 99)["x"]["p_value"])
    assert np.mean(np.array(p_values) < 0.1) < 0.25
    assert 0.35 < np.mean(p_values) < 0.65


def test_small_samples_are_tested_exactly():
    """Two stories, four permutations: half of them are at least as far apart."""
    results = compare_ratios({"x": mean_of([1.0, 1.0])}, {"x": mean_of([0.0, 0.0])}, 1000)
    assert results["x"]["p_value"] == 0.5


def test_one_story_has_no_interval():
    with pytest.raises(ValueError, match="two stories or more"):
        ratio_intervals({"x": mean_of([1.0])}, 10)


def test_without_scipy_the_error_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def without_scipy(name, *arguments, **named):
        if name.startswith("scipy"):
            raise ImportError(name)
        return real(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", without_scipy)
    with pytest.raises(ImportError, match=r'pip install "hf_storyend\[evaluation\]"'):
        ratio_intervals({"x": mean_of([1.0, 2.0])}, 10)
