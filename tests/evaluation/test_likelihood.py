"""Perplexity and Story Cloze accuracy against the model's own losses."""

import math

import pytest
import torch
from datasets import Dataset, DatasetDict

from hf_storyend import IncrementalEncoderConfig, IncrementalEncoderForEndingGeneration
from hf_storyend.data.batching import tokenise_stories
from hf_storyend.evaluation.likelihood import cloze_accuracy
from hf_storyend.evaluation.options import EvaluationOptions
from hf_storyend.evaluation.run import evaluate_model
from hf_storyend.systems import match_tokenizer

NO_SAMPLING = EvaluationOptions(batch_size=4, num_seeds=0)


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
    """For comparison with other systems, copied out-of-vocabulary words count as the unknown token."""
    stories = Dataset.from_list([{"context": ["Anna saw Xerxes.", "Yolanda saw Anna."], "ending": "Xerxes saw Zed."}])
    config = IncrementalEncoderConfig.for_tokenizer(tokenizer, embedding_size=8, hidden_size=12, copy=True)
    model = IncrementalEncoderForEndingGeneration(config).eval()
    match_tokenizer(tokenizer, config)
    tokenised = tokenise_stories(DatasetDict({"test": stories}), tokenizer)["test"]
    batch = tokenizer(stories["context"], text_target=stories["ending"], return_tensors="pt")
    assert (batch["labels"] >= config.vocab_size).any()
    with torch.no_grad():
        probabilities = model(**batch).logits[0].softmax(dim=-1)
    unknown, slots = probabilities[:, config.unk_token_id], probabilities[:, config.vocab_size :].sum(dim=-1)
    expected = [
        (unknown + slots)[place]
        if word >= config.vocab_size or word == config.unk_token_id
        else probabilities[place, word]
        for place, word in enumerate(batch["labels"][0].tolist())
    ]
    perplexity = math.exp(-torch.stack(expected).log().mean().item())
    result = evaluate_model(model, tokenizer, stories, tokenised, options=EvaluationOptions())
    assert result.metrics["perplexity"] == pytest.approx(perplexity, rel=1e-5)
    assert math.isfinite(result.metrics["sampled_perplexity"])


@pytest.fixture
def questions(tokenizer, model, contexts) -> Dataset:
    """The first ending is the likelier one of each question and, except once, the right one."""
    rows = []
    for number, context in enumerate(contexts):
        pair = ["Tom.", "The kitchen was full of smoke and mice."]
        losses = [
            model(**tokenizer([context], text_target=[ending], return_tensors="pt")).ending_loss.item()
            * (len(tokenizer.tokenize(ending)) + 1)
            for ending in pair
        ]
        pair.sort(key=lambda ending, losses=losses, pair=tuple(pair): losses[pair.index(ending)])
        rows.append({"context": context, "ending1": pair[0], "ending2": pair[1], "right": 2 if number == 1 else 1})
    return Dataset.from_list(rows)


def test_cloze_accuracy_is_how_often_the_right_ending_is_likelier(model, tokenizer, questions):
    result = cloze_accuracy(model, tokenizer, questions, batch_size=2)
    assert result["cloze_accuracy"] == pytest.approx(100 * 2 / 3)
    assert set(result) == {"cloze_accuracy", "cloze_accuracy_normalised"}


def test_normalised_cloze_compares_means(model, tokenizer, contexts):
    """An ending and the same one said three times: the sum is for the short one, whatever the mean is for."""
    long = " ".join(["Tom saw mice"] * 3) + "."
    question = {"context": contexts[0], "ending1": "Tom saw mice.", "ending2": long, "right": 1}
    result = cloze_accuracy(model, tokenizer, Dataset.from_list([question]))
    assert result["cloze_accuracy"] == 100
    means = [
        model(**tokenizer([contexts[0]], text_target=[question[name]], return_tensors="pt")).ending_loss.item()
        for name in ("ending1", "ending2")
    ]
    assert result["cloze_accuracy_normalised"] == (100 if means[0] < means[1] else 0)


def test_equal_endings_count_half(model, tokenizer, contexts):
    question = {"context": contexts[1], "ending1": "Tom saw mice.", "ending2": "Tom saw mice.", "right": 2}
    assert cloze_accuracy(model, tokenizer, Dataset.from_list([question]))["cloze_accuracy"] == 50


def test_no_questions(model, tokenizer, questions):
    with pytest.raises(ValueError, match="`questions` is empty"):
        cloze_accuracy(model, tokenizer, questions.select([]))
