"""Evaluation of a model: likelihoods equal to the model's own, and nothing disturbed."""

import math
import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from datasets import Dataset, DatasetDict

from hf_storyend import IncrementalEncoderConfig, IncrementalEncoderForEndingGeneration
from hf_storyend.data.batching import tokenise_stories
from hf_storyend.evaluation import EvaluationOptions, cloze_accuracy, evaluate_model
from hf_storyend.evaluation.distributed import map_stories
from hf_storyend.systems import match_tokenizer

CONTEXTS = [
    ["Anna put a cake in the oven.", "They watched a long film."],
    ["Tom saw mice."],
    ["They didn't hear the timer!", "The kitchen was full of smoke.", "Why?"],
]
ENDINGS = ["The cake was burnt.", "Tom opened the window, and Anna saw the mice.", "They burn cakes."]
NO_SAMPLING = EvaluationOptions(batch_size=4, num_seeds=0)


@pytest.fixture
def stories() -> Dataset:
    rng = random.Random(0)
    rows = [{"context": rng.choice(CONTEXTS), "ending": rng.choice(ENDINGS)} for _ in range(11)]
    return Dataset.from_list(rows)


@pytest.fixture
def tokenised(stories, tokenizer) -> Dataset:
    return tokenise_stories(DatasetDict({"test": stories}), tokenizer)["test"]


def test_perplexity_is_that_of_the_models_own_loss(model, tokenizer, stories, tokenised):
    batch = tokenizer(stories["context"], text_target=stories["ending"], return_tensors="pt")
    expected = math.exp(model(**batch).ending_loss.item())
    result = evaluate_model(model, tokenizer, stories, tokenised, options=NO_SAMPLING)
    assert result.metrics["perplexity"] == pytest.approx(expected, rel=1e-5)
    assert "sampled_perplexity" not in result.metrics
    assert math.exp(sum(row["loss"] for row in result.endings) / sum(row["num_words"] for row in result.endings)) == (
        pytest.approx(expected, rel=1e-5)
    )


def test_a_copied_word_counts_as_the_unknown_one(tokenizer):
    """So that systems that copy can be compared with others: what the slots get is added to the unknown word."""
    stories = Dataset.from_list([{"context": ["Anna saw Xerxes.", "Yolanda saw Anna."], "ending": "Xerxes saw Zed."}])
    config = IncrementalEncoderConfig.for_tokenizer(tokenizer, embedding_size=8, hidden_size=12, copy=True)
    model = IncrementalEncoderForEndingGeneration(config).eval()
    match_tokenizer(tokenizer, config)
    tokenised = tokenise_stories(DatasetDict({"test": stories}), tokenizer)["test"]
    batch = tokenizer(stories["context"], text_target=stories["ending"], return_tensors="pt")
    assert (batch["labels"] >= config.vocab_size).any()
    with torch.no_grad():
        chances = model(**batch).logits[0].softmax(dim=-1)
    unknown, slots = chances[:, config.unk_token_id], chances[:, config.vocab_size :].sum(dim=-1)
    expected = [
        (unknown + slots)[place] if word >= config.vocab_size or word == config.unk_token_id else chances[place, word]
        for place, word in enumerate(batch["labels"][0].tolist())
    ]
    perplexity = math.exp(-torch.stack(expected).log().mean().item())
    result = evaluate_model(model, tokenizer, stories, tokenised, options=EvaluationOptions())
    assert result.metrics["perplexity"] == pytest.approx(perplexity, rel=1e-5)
    assert math.isfinite(result.metrics["sampled_perplexity"])


def test_endings_are_those_of_generate(model, tokenizer, stories, tokenised):
    options = EvaluationOptions(batch_size=3, generation={"num_beams": 2, "max_new_tokens": 5})
    result = evaluate_model(model, tokenizer, stories, tokenised, options=options)
    for record, story in zip(result.endings, stories, strict=True):
        inputs = tokenizer([story["context"]], return_tensors="pt")
        written = model.generate(**inputs, num_beams=2, max_new_tokens=5)
        expected = tokenizer.batch_decode(written, skip_special_tokens=True, context=[story["context"]])
        assert record["ending"] == expected[0] and record["reference"] == story["ending"]


def test_batches_do_not_change_the_result(model, tokenizer, stories, tokenised):
    first, second = (
        evaluate_model(model, tokenizer, stories, tokenised, options=EvaluationOptions(batch_size=size))
        for size in (2, 128)
    )
    assert [row["ending"] for row in first.endings] == [row["ending"] for row in second.endings]
    for name in set(first.metrics) - {"stories_per_second"}:
        assert first.metrics[name] == pytest.approx(second.metrics[name], rel=1e-5), name


def test_all_words_as_negatives_give_the_true_perplexity(model, tokenizer, stories, tokenised):
    """There are fewer words than negatives here; only the rarest are still corrected a little."""
    words_only = EvaluationOptions(predict_with_generate=False, num_relation_names=0)
    metrics = evaluate_model(model, tokenizer, stories, tokenised, options=words_only).metrics
    assert metrics["sampled_perplexity"] == pytest.approx(metrics["perplexity"], rel=0.1)
    few = evaluate_model(
        model, tokenizer, stories, tokenised, options=replace(words_only, num_sampled_classes=5)
    ).metrics
    assert few["sampled_perplexity"] < 0.8 * metrics["perplexity"]
    assert few["sampled_perplexity_std"] > 0


def test_relation_names_among_the_negatives_lower_the_sampled_perplexity(model, tokenizer, stories, tokenised):
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


def test_the_first_stories_only_and_no_endings(model, tokenizer, stories, tokenised):
    result = evaluate_model(
        model,
        tokenizer,
        stories,
        tokenised,
        options=EvaluationOptions(max_stories=4, predict_with_generate=False, bootstrap_samples=20),
    )
    assert result.num_stories == 4 and result.endings == [] and result.trivial_baselines == {}
    assert set(result.metrics) == {
        *("perplexity", "sampled_perplexity", "sampled_perplexity_std", "stories_per_second")
    }
    alone = evaluate_model(model, tokenizer, stories.select(range(4)), tokenised.select(range(4)), options=NO_SAMPLING)
    assert result.metrics["perplexity"] == pytest.approx(alone.metrics["perplexity"])
    low, high = result.intervals["perplexity"]
    assert low <= result.metrics["perplexity"] <= high


@pytest.mark.parametrize("generation", [{}, {"do_sample": True}])
def test_nothing_is_disturbed(model, tokenizer, stories, tokenised, generation):
    model.train()
    model.lm_head.eval()
    states = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()
    evaluate_model(
        model, tokenizer, stories, tokenised, options=EvaluationOptions(generation=generation, bootstrap_samples=10)
    )
    assert model.training and model.encoder.training and not model.lm_head.training
    assert torch.equal(states[0], torch.get_rng_state())
    assert (states[1] == np.random.get_state()[1]).all() and states[2] == random.getstate()
    assert all(parameter.grad is None for parameter in model.parameters())


def test_what_was_changed_is_mended_after_a_failure(model, tokenizer, tokenised):
    def work(bare, batch, rows):
        raise KeyError("broken")

    model.train()
    with pytest.raises(KeyError, match="broken"):
        map_stories(work, model, tokenizer, tokenised, batch_size=2)
    assert model.training


def test_dropout_is_off(model, tokenizer, stories, tokenised):
    before = evaluate_model(model, tokenizer, stories, tokenised, options=NO_SAMPLING).metrics["perplexity"]
    model.dropout.p = 0.9
    model.train()
    after = evaluate_model(model, tokenizer, stories, tokenised, options=NO_SAMPLING).metrics["perplexity"]
    assert before == after


def test_a_wrapped_model_is_unwrapped(model, tokenizer, stories, tokenised):
    plain = evaluate_model(model, tokenizer, stories, tokenised, options=NO_SAMPLING)
    wrapped = evaluate_model(torch.nn.DataParallel(model), tokenizer, stories, tokenised, options=NO_SAMPLING)
    assert plain.endings == wrapped.endings


def questions(tokenizer, model) -> Dataset:
    """The first ending is the likelier one of each question; the right one is said to be the first, but once."""
    rows = []
    for number, context in enumerate(CONTEXTS):
        pair = ["Tom.", "The kitchen was full of smoke and mice."]
        losses = [
            model(**tokenizer([context], text_target=[ending], return_tensors="pt")).ending_loss.item()
            * (len(tokenizer.tokenize(ending)) + 1)
            for ending in pair
        ]
        pair.sort(key=lambda ending, losses=losses, pair=tuple(pair): losses[pair.index(ending)])
        rows.append({"context": context, "ending1": pair[0], "ending2": pair[1], "right": 2 if number == 1 else 1})
    return Dataset.from_list(rows)


def test_cloze_accuracy_is_how_often_the_right_ending_is_likelier(model, tokenizer):
    result = cloze_accuracy(model, tokenizer, questions(tokenizer, model), batch_size=2)
    assert result["cloze_accuracy"] == pytest.approx(100 * 2 / 3)
    assert set(result) == {"cloze_accuracy", "cloze_accuracy_normalised"}


def test_normalised_cloze_compares_means(model, tokenizer):
    """An ending and the same one said three times: the sum is for the short one, whatever the mean is for."""
    long = " ".join(["Tom saw mice"] * 3) + "."
    question = {"context": CONTEXTS[0], "ending1": "Tom saw mice.", "ending2": long, "right": 1}
    result = cloze_accuracy(model, tokenizer, Dataset.from_list([question]))
    assert result["cloze_accuracy"] == 100
    means = [
        model(**tokenizer([CONTEXTS[0]], text_target=[question[name]], return_tensors="pt")).ending_loss.item()
        for name in ("ending1", "ending2")
    ]
    assert result["cloze_accuracy_normalised"] == (100 if means[0] < means[1] else 0)


def test_equal_endings_count_half(model, tokenizer):
    question = {"context": CONTEXTS[1], "ending1": "Tom saw mice.", "ending2": "Tom saw mice.", "right": 2}
    assert cloze_accuracy(model, tokenizer, Dataset.from_list([question]))["cloze_accuracy"] == 50


def test_errors(model, tokenizer, stories, tokenised):
    with pytest.raises(ValueError, match="`stories` has 11 rows, `tokenised` 10"):
        evaluate_model(model, tokenizer, stories, tokenised.select(range(10)))
    with pytest.raises(ValueError, match="`stories` is empty"):
        evaluate_model(model, tokenizer, stories.select([]), tokenised.select([]))
    with pytest.raises(ValueError, match="ask for one each"):
        generation = {"num_return_sequences": 2, "num_beams": 2}
        evaluate_model(model, tokenizer, stories, tokenised, options=EvaluationOptions(generation=generation))
    with pytest.raises(ValueError, match="`questions` is empty"):
        cloze_accuracy(model, tokenizer, questions(tokenizer, model).select([]))
