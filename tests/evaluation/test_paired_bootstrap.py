"""Paired bootstrap: both systems are resampled with the same stories."""

import numpy as np
import pytest

from hf_storyend.evaluation.significance import PairedBootstrap, paired_difference
from hf_storyend.evaluation.text_metrics import CorpusBleu, Ratio, mean_of

REFERENCES = [f"Word{row} was here with me today ." for row in range(60)]
GOOD = [f"word{row} was here ." for row in range(60)]
BAD = [f"other{row} came by ." for row in range(60)]


@pytest.fixture(scope="module")
def bootstrap() -> PairedBootstrap:
    return PairedBootstrap(REFERENCES, 300)


def test_a_constant_difference_is_certain_however_much_stories_vary(bootstrap):
    """Unpaired resamples of values that vary so much would say nothing about it."""
    values = np.random.default_rng(0).normal(10, 50, size=60)
    found = paired_difference(bootstrap.ratio(mean_of(values + 1)), bootstrap.ratio(mean_of(values)))
    assert [found[name] for name in ("low", "difference", "high")] == pytest.approx([1, 1, 1])
    assert found["p_value"] == pytest.approx(2 / 301)


def test_the_interval_has_the_width_of_a_normal_approximation():
    rng = np.random.default_rng(0)
    first, second = rng.normal(10, 2, size=400), rng.normal(10, 2, size=400)
    bootstrap = PairedBootstrap(["a reference"] * 400, 2000)
    found = paired_difference(bootstrap.ratio(mean_of(first)), bootstrap.ratio(mean_of(second)))
    assert (found["high"] - found["low"]) / 2 == pytest.approx(1.96 * (first - second).std() / 20, rel=0.1)


def test_bleu_is_that_of_the_corpus(bootstrap):
    for endings in (GOOD, BAD, REFERENCES):
        scores = CorpusBleu(REFERENCES).scores(endings)
        own = bootstrap.bleu(endings)
        assert {name: own[name][0] for name in own} == {name: pytest.approx(scores[name]) for name in own}
        assert set(own) == {"bleu_1", "bleu_2"} and len(own["bleu_1"]) == 301


def test_better_endings_are_better_and_equal_ones_are_not(bootstrap):
    good, bad = bootstrap.bleu([*GOOD[:30], *REFERENCES[30:]]), bootstrap.bleu(BAD)
    found = paired_difference(good["bleu_1"], bad["bleu_1"])
    assert 0 < found["low"] < found["difference"] < found["high"] and found["p_value"] < 0.01
    turned = paired_difference(bad["bleu_1"], good["bleu_1"])
    assert turned["high"] == pytest.approx(-found["low"]) and turned["p_value"] == found["p_value"]
    assert paired_difference(good["bleu_1"], good["bleu_1"])["p_value"] == 1.0


def test_perplexity_is_resampled_as_a_ratio_of_sums(bootstrap):
    losses, num_words = np.array([2.0, 40.0] * 30), np.array([1.0, 10.0] * 30)
    values = bootstrap.ratio(Ratio(losses, num_words, is_logarithm=True))
    assert values[0] == pytest.approx(np.exp(42 / 11)) and values[1:].min() < values[0] < values[1:].max()


def test_the_seed_decides(bootstrap):
    ratio = mean_of(np.arange(60.0))
    assert (PairedBootstrap(REFERENCES, 300).ratio(ratio) == bootstrap.ratio(ratio)).all()
    assert (PairedBootstrap(REFERENCES, 300, seed=1).ratio(ratio) != bootstrap.ratio(ratio)).any()
