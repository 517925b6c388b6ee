"""The sampled softmax of the authors' code, against simulations that follow its description step by step."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from hf_storyend.evaluation.options import EvaluationOptions
from hf_storyend.evaluation.run import evaluate_model
from hf_storyend.evaluation.sampled_perplexity import (
    PROTOCOL_BATCH_SIZE,
    RELATION_NAME,
    SampledClasses,
    authors_vocabulary,
    log_uniform_probabilities,
    sample_classes,
    sampled_losses,
    sampled_perplexities,
)


class Uniforms:
    """A generator of predetermined numbers, in any portions."""

    def __init__(self, seed: int):
        self.numbers = np.random.default_rng(seed).random(100_000)
        self.used = 0

    def random(self, size: int) -> np.ndarray:
        self.used += size
        return self.numbers[self.used - size : self.used]


def simulated_draw(numbers: np.ndarray, num_words: int, num_classes: int) -> tuple[list[int], int]:
    """Draw by inverting the distribution function until enough words are different."""
    limits = np.cumsum([math.log((k + 2) / (k + 1)) / math.log(num_words + 1) for k in range(num_words)])
    chosen: list[int] = []
    for tries, number in enumerate(numbers, start=1):
        word = int(np.searchsorted(limits, number, side="right"))
        if word not in chosen:
            chosen.append(word)
        if len(chosen) == num_classes:
            return chosen, tries
    raise AssertionError("not enough numbers")


def simulated_loss(logits: list[float], target: int, sampled: list[int], tries: int) -> float:
    """Return -log of the target's share of the corrected exponentials."""

    def corrected(word: int) -> float:
        probability = math.log((word + 2) / (word + 1)) / math.log(len(logits) + 1)
        return math.exp(logits[word] - math.log(1 - (1 - probability) ** tries))

    others = sum(corrected(word) for word in sampled if word != target)
    return -math.log(corrected(target) / (corrected(target) + others))


def test_probabilities_are_those_of_the_log_uniform_distribution():
    probabilities = log_uniform_probabilities(1000)
    assert probabilities.sum().item() == pytest.approx(1)
    assert probabilities[0].item() == pytest.approx(math.log(2) / math.log(1001))
    assert (probabilities.diff() < 0).all()


@settings(deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 40), st.data())
def test_sampling_follows_the_simulation(seed, num_words, data):
    num_classes = data.draw(st.integers(1, num_words))
    ids, tries = sample_classes(Uniforms(seed), num_words, num_classes)
    assert (ids.tolist(), tries) == simulated_draw(Uniforms(seed).numbers, num_words, num_classes)


def test_the_expected_count_is_the_probability_of_a_word_in_a_sequence():
    """What the correction assumes: in sequences of n draws, word k is found with 1 - (1 - P(k)) ** n."""
    rng, num_words, tries = np.random.default_rng(0), 30, 12
    sequences = rng.choice(num_words, p=log_uniform_probabilities(num_words).numpy(), size=(20_000, tries))
    for word in (0, 3, 29):
        seen = (sequences == word).any(axis=1).mean()
        expected = -math.expm1(tries * math.log1p(-log_uniform_probabilities(num_words)[word]))
        assert seen == pytest.approx(expected, abs=0.015)


def test_losses_follow_the_simulation():
    torch.manual_seed(0)
    num_words, logits = 50, torch.randn(6, 50, dtype=torch.float64)
    targets = torch.tensor([0, 3, 49, 7, 0, 20])
    sampled = torch.tensor(np.array([sample_classes(np.random.default_rng(row), num_words, 9)[0] for row in range(6)]))
    sampled[3, 2] = 7  # one that is the target
    tries = torch.tensor([9, 12, 15, 20, 30, 40], dtype=torch.float64)
    log_misses = torch.log1p(-log_uniform_probabilities(num_words))
    losses = sampled_losses(logits, targets, sampled, tries, log_misses)
    for row in range(6):
        alone = simulated_loss(logits[row].tolist(), int(targets[row]), sampled[row].tolist(), int(tries[row]))
        assert losses[row].item() == pytest.approx(alone, rel=1e-9)


def test_a_rare_target_gains_and_sampling_all_classes_is_the_true_softmax():
    logits, targets = torch.zeros(2, 1000, dtype=torch.float64), torch.tensor([0, 999])
    few = SampledClasses.sample(1, 1000, 50, num_seeds=4, seed=0)
    common, rare = few.losses(logits, targets, torch.tensor([0, 0])).mean(dim=0).tolist()
    assert rare < common
    small = torch.randn(2, 20, dtype=torch.float64)
    everything = SampledClasses(torch.arange(20)[None, None], torch.tensor([[1e5]]).double(), few.log_misses[:20])
    losses = everything.losses(small, torch.tensor([1, 19]), torch.tensor([0, 0]))[0]
    torch.testing.assert_close(losses, functional.cross_entropy(small, torch.tensor([1, 19]), reduction="none"))


def test_relation_names_are_between_special_symbols_and_words():
    vocabulary = authors_vocabulary(num_words=10, num_relation_names=3)
    assert vocabulary.tolist() == [0, 1, 2, 3, RELATION_NAME, RELATION_NAME, RELATION_NAME, 4, 5, 6, 7, 8, 9]
    assert authors_vocabulary(10, 0).tolist() == list(range(10))
    assert authors_vocabulary(2, 1).tolist() == [0, 1, RELATION_NAME]


def test_a_relation_name_takes_the_place_of_a_word_and_is_ignored():
    """The same as in a model that has logits for them, all minus infinity, and words behind."""
    num_words, num_names, num_classes = 40, 5, 12
    sampled = SampledClasses.sample(1, num_words, num_classes, 3, seed=1, num_relation_names=num_names)
    logits, targets = torch.randn(4, num_words, dtype=torch.float64), torch.tensor([0, 3, 4, 39])
    losses = sampled.losses(logits, targets, torch.zeros(4, dtype=torch.long))
    assert (sampled.ids == RELATION_NAME).any()
    longer = torch.cat((logits[:, :4], torch.full((4, num_names), -math.inf), logits[:, 4:]), dim=1)
    for run in range(3):
        ids, tries = sample_classes(np.random.default_rng([1, run, 0]), num_words + num_names, num_classes)
        for row, target in enumerate([0, 3, 4 + num_names, 39 + num_names]):
            expected = simulated_loss(longer[row].tolist(), target, ids.tolist(), tries)
            assert losses[run, row].item() == pytest.approx(expected, rel=1e-9)


def test_stories_of_a_protocol_batch_share_classes_whatever_is_computed_together():
    num_stories = 2 * PROTOCOL_BATCH_SIZE + 1
    sampled = SampledClasses.sample(num_stories, 500, 20, num_seeds=2, seed=3)
    assert sampled.ids.shape == (2, 3, 20)
    assert len({tuple(ids) for run in sampled.ids.tolist() for ids in run}) == 6
    logits, targets = torch.randn(1, 500).expand(4, -1), torch.tensor([5, 5, 5, 5])
    rows = torch.tensor([0, PROTOCOL_BATCH_SIZE - 1, PROTOCOL_BATCH_SIZE, 2 * PROTOCOL_BATCH_SIZE])
    first, same, second, third = sampled.losses(logits, targets, rows)[0].tolist()
    assert first == same and len({first, second, third}) == 3


def test_the_perplexity_is_a_mean_over_batches_not_over_words():
    losses = np.ones((PROTOCOL_BATCH_SIZE + 1, 1))
    num_words = np.ones(PROTOCOL_BATCH_SIZE + 1)
    losses[-1] = 30.0
    num_words[-1] = 10.0
    assert sampled_perplexities(losses, num_words)[0] == pytest.approx(math.exp((1 + 3) / 2))


def test_sampling_all_classes_gives_the_true_perplexity(model, tokenizer, stories, tokenised):
    """The vocabulary is smaller than the sample; only the rarest words are still corrected a little."""
    words_only = EvaluationOptions(predict_with_generate=False, num_relation_names=0)
    metrics = evaluate_model(model, tokenizer, stories, tokenised, options=words_only).metrics
    assert metrics["sampled_perplexity"] == pytest.approx(metrics["perplexity"], rel=0.1)
    few = evaluate_model(
        model, tokenizer, stories, tokenised, options=replace(words_only, num_sampled_classes=5)
    ).metrics
    assert few["sampled_perplexity"] < 0.8 * metrics["perplexity"]
    assert few["sampled_perplexity_std"] > 0


def test_relation_names_lower_the_sampled_perplexity(model, tokenizer, stories, tokenised):
    options = EvaluationOptions(predict_with_generate=False, num_sampled_classes=8)
    with_names, without = (
        evaluate_model(
            model, tokenizer, stories, tokenised, options=replace(options, num_relation_names=number)
        ).metrics
        for number in (45, 0)
    )
    assert with_names["sampled_perplexity"] < without["sampled_perplexity"]
    assert with_names["perplexity"] == without["perplexity"]
    assert options.num_relation_names == 45, "the authors' number"
