"""Scoring of any system's endings: all metrics, trivial baselines, overlap with training data, paired tests."""

import numpy as np
import pytest
import sacrebleu
from datasets import Dataset
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_storyend.evaluation.options import EvaluationOptions
from hf_storyend.evaluation.scoring import (
    EndingScorer,
    best_constant_ending,
    compare_with_baseline,
    score_endings,
)
from hf_storyend.evaluation.significance import bleu_intervals

STORIES = Dataset.from_list(
    [
        {"context": ["Anna put a cake in the oven.", "She fell asleep."], "ending": "The cake was burnt ."},
        {"context": ["Tom saw a film.", "It was long."], "ending": "Tom didn't like it , at all ."},
        {"context": ["We saw mice."], "ending": "We bought a cat."},
    ]
)
ENDINGS = ["The cake was burnt.", "Tom liked it.", "WE saw mice!"]
REFERENCES = [f"word{row} was here with me today ." for row in range(60)]
GOOD = [f"word{row} was here ." for row in range(60)]
BAD = [f"other{row} came by ." for row in range(60)]


def test_all_metrics_in_order():
    result = score_endings(STORIES, ENDINGS)
    assert list(result.metrics) == [
        *("bleu_1", "bleu_2", "bleu_1_cased", "bleu_2_cased", "rouge_l", "distinct_1", "distinct_2"),
        *("repetition", "length", "context_copies"),
    ]
    assert result.metrics["context_copies"] == pytest.approx(100 / 3)
    assert result.metrics["length"] == pytest.approx((5 + 4 + 4) / 3)
    assert result.endings[2] == {
        "row": 2,
        "context": ["We saw mice."],
        "reference": "We bought a cat.",
        "ending": "WE saw mice!",
    }
    assert result.signatures["bleu_1"].startswith("nrefs:1|case:lc|eff:no|tok:13a|smooth:exp|version:")
    assert "case:mixed" in result.signatures["bleu_2_cased"]


def test_trivial_baselines_and_references_are_scored_too():
    result = score_endings(STORIES, ENDINGS, options=EvaluationOptions(constant_ending="Tom was sad ."))
    assert list(result.trivial_baselines) == ["constant_ending", "last_sentence", "reference"]
    scorer = EndingScorer(STORIES)
    assert result.trivial_baselines["constant_ending"] == scorer.metrics(["Tom was sad."] * 3)
    assert result.trivial_baselines["last_sentence"] == scorer.metrics(
        ["She fell asleep.", "It was long.", "We saw mice."]
    )
    assert result.trivial_baselines["reference"]["bleu_2_cased"] == pytest.approx(100)
    table = result.to_markdown("ours")
    assert "| 3 stories | ours | one constant ending | copy of the last sentence | people |" in table
    assert "Tom was sad ." in table


@settings(deadline=None)
@given(
    st.lists(
        st.lists(st.sampled_from("a b c d".split()), min_size=1, max_size=5).map(" ".join), min_size=1, max_size=6
    )
)
def test_no_other_constant_ending_has_a_higher_bleu(endings):
    def bleu(ending: str) -> float:
        return sacrebleu.BLEU(max_ngram_order=1).corpus_score([ending] * len(endings), [endings]).score

    assert bleu(best_constant_ending(endings)) == pytest.approx(max(map(bleu, endings)))


def test_training_overlap_counts_endings_that_are_training_endings():
    stories = Dataset.from_dict({"context": [["It rained."]] * 3, "ending": ["We got wet .", "It was over.", "No!"]})
    result = score_endings(
        stories,
        ["WE got wet.", "We got very wet.", ""],
        training_endings=["We got wet.", "No!"],
        options=EvaluationOptions(constant_ending="Yes."),
    )
    assert result.metrics["training_overlap"] == pytest.approx(100 / 3)
    assert result.trivial_baselines["reference"]["training_overlap"] == pytest.approx(200 / 3)
    assert result.trivial_baselines["constant_ending"]["training_overlap"] == 0
    assert "training_overlap" not in score_endings(stories, ["a", "b", "c"]).metrics


def test_empty_endings_score_zero(tokenizer):
    result = score_endings(STORIES, ["", " ", ""], tokenizer=tokenizer)
    assert set(result.metrics.values()) == {0.0}


def test_intervals_contain_the_scores():
    mixed = [*GOOD[:30], *BAD[30:]]
    stories = Dataset.from_dict({"context": [["x y z ."]] * 60, "ending": REFERENCES})
    result = score_endings(stories, mixed, options=EvaluationOptions(bootstrap_samples=200))
    assert result.intervals["bleu_1"] == bleu_intervals(mixed, REFERENCES, 200)["bleu_1"]
    for name in ("bleu_1", "bleu_2", "rouge_l"):
        low, high = result.intervals[name]
        assert low < result.metrics[name] < high
    assert set(result.metrics) - set(result.intervals) == {"distinct_1", "distinct_2"}
    assert "[" in result.to_markdown()


def test_a_baseline_is_compared_in_all_common_metrics():
    stories = Dataset.from_dict({"context": [["x y z ."]] * 60, "ending": REFERENCES})
    result = score_endings(stories, GOOD)
    baseline = [{"ending": ending, "loss": 2.0, "num_words": 1} for ending in BAD]
    compared = compare_with_baseline(result, baseline, num_resamples=50)
    assert set(compared) == set(result.metrics) - {"distinct_1", "distinct_2"}
    for record in result.endings:
        record |= {"loss": 1.0, "num_words": 1}
    result.metrics["perplexity"] = np.e
    result.significance = compare_with_baseline(result, baseline, num_resamples=50)
    assert result.significance["perplexity"]["baseline"] == pytest.approx(np.e**2)
    assert "| paired test | ours | baseline | p |" in result.to_markdown("ours")
    with pytest.raises(ValueError, match="59 endings for 60 stories"):
        compare_with_baseline(result, baseline[:59])


def test_errors():
    with pytest.raises(ValueError, match="2 endings for 3 stories"):
        score_endings(STORIES, ENDINGS[:2])
    with pytest.raises(ValueError, match="no stories"):
        score_endings(STORIES.select([]), [])
    with pytest.raises(ValueError, match="no ending with a word"):
        best_constant_ending([])
