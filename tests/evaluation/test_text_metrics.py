"""Metrics of endings against cases worked out by hand, and against sacrebleu itself."""

import math

import numpy as np
import pytest
import sacrebleu
from datasets import Dataset
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_storyend.evaluation.scoring import EndingScorer
from hf_storyend.evaluation.text_metrics import Ratio, distinct, has_repetition, is_copy, rouge_l, tokenize

STORIES = Dataset.from_list(
    [
        {"context": ["Anna put a cake in the oven.", "She fell asleep."], "ending": "The cake was burnt ."},
        {"context": ["Tom saw a film.", "It was long."], "ending": "Tom didn't like it , at all ."},
        {"context": ["We saw mice."], "ending": "We bought a cat."},
    ]
)
ENDINGS = ["The cake was burnt.", "Tom liked it.", "WE saw mice!"]


def test_bleu_by_hand():
    scores = EndingScorer(STORIES.select([0])).metrics(["The cake burnt the cake."])
    # Of 6 words `the`, `cake`, `burnt` and the full stop count once each; of 5 pairs, `the cake` does.
    assert scores["bleu_1"] == pytest.approx(100 * 4 / 6)
    assert scores["bleu_2"] == pytest.approx(100 * math.sqrt(4 / 6 * 1 / 5))
    # Cased, `The` of the ending is that of the reference, and `the` is none.
    assert scores["bleu_1_cased"] == pytest.approx(100 * 4 / 6)


def test_short_endings_are_penalised():
    scores = EndingScorer(STORIES.select([0])).metrics(["the cake"])
    assert scores["bleu_1"] == pytest.approx(100 * math.exp(1 - 5 / 2))


@settings(deadline=None)
@given(st.lists(st.sampled_from("the cake a Tom burnt didn't . , !".split()), max_size=8).map(" ".join))
def test_bleu_is_that_of_sacrebleu(ending):
    references = list(STORIES["ending"])
    endings = [ending, *ENDINGS[1:]]
    scores = EndingScorer(STORIES).metrics(endings)
    for order in (1, 2):
        for lower, suffix in ((True, ""), (False, "_cased")):
            metric = sacrebleu.BLEU(lowercase=lower, max_ngram_order=order, force=True)
            assert scores[f"bleu_{order}{suffix}"] == metric.corpus_score(endings, [references]).score


def test_spaces_around_punctuation_make_no_difference():
    natural = ["The cake was burnt.", "Tom didn't like it, at all.", "We bought a cat."]
    assert EndingScorer(STORIES).metrics(natural)["bleu_2_cased"] == pytest.approx(100)
    assert tokenize("Tom didn't like it , at all .") == tokenize("Tom didn't like it, at all.")


@pytest.mark.parametrize(
    ("words", "reference", "expected"),
    [
        ("a b c d", "a x c", 2 * 2 / 7),
        ("a b", "b a", 2 * 1 / 4),
        ("a b c", "a b c", 1.0),
        ("a a a", "a", 2 * 1 / 4),
        ("a", "b", 0.0),
        ("", "a", 0.0),
    ],
)
def test_rouge_l(words, reference, expected):
    assert rouge_l(words.split(), reference.split()) == pytest.approx(expected)


def test_repetition_is_a_repeated_bigram():
    assert has_repetition("he was happy and he was sad".split())
    assert has_repetition("no no no".split())
    assert not has_repetition("he and he".split())


def test_copies_ignore_case_and_punctuation():
    context = [tokenize("We saw mice."), tokenize("They ran.")]
    assert is_copy(tokenize("WE saw mice!"), context)
    assert not is_copy(tokenize("We saw"), context)
    assert not is_copy(tokenize("."), [["!"]])


def test_distinct():
    endings = [["a", "b"], ["a", "b", "a"]]
    assert distinct(endings, 1) == 2 / 5
    assert distinct(endings, 2) == 2 / 3
    assert distinct([[]], 1) == 0.0


def test_knowledge_use_counts_tails_of_context_words(tokenizer):
    """oven -> cake, kitchen; cake -> burn, and `burnt` is a form of `burn`."""
    scorer = EndingScorer(STORIES.select([0]), tokenizer)
    metrics = scorer.metrics(["The cake was burnt in the kitchen, Tom."])
    assert metrics["knowledge_use"] == pytest.approx(100 * 3 / 8)
    assert metrics["knowledge_use_content"] == pytest.approx(100)
    # `smoke` is in the knowledge table, but not a tail for this story.
    assert scorer.metrics(["Smoke, cake"])["knowledge_use_content"] == pytest.approx(50)
    other = EndingScorer(STORIES.select([1]), tokenizer)
    assert other.metrics(["The cake was burnt."])["knowledge_use"] == 0.0


def test_knowledge_use_is_not_measured_without_knowledge(tokenizer):
    assert "knowledge_use" not in EndingScorer(STORIES).metrics(ENDINGS)
    tokenizer.knowledge = type(tokenizer.knowledge)()
    assert "knowledge_use" not in EndingScorer(STORIES, tokenizer).metrics(ENDINGS)


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(0, 50), st.integers(1, 20)), min_size=1, max_size=20), st.data())
def test_a_ratio_over_rows_is_that_of_their_sums(parts, data):
    above, below = np.array(parts, dtype=float).T
    rows = np.array(data.draw(st.lists(st.integers(0, len(parts) - 1), min_size=1, max_size=30)))
    assert Ratio(above, below).over(rows) == pytest.approx(sum(above[rows]) / sum(below[rows]))
    assert Ratio(above, below, is_logarithm=True).value == pytest.approx(math.exp(sum(above) / sum(below)))
