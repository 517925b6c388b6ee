"""Bad input is refused with a sentence that says what and where."""

import pytest
import torch
from story_cases import NUM_RELATIONS, NUM_WORDS, as_tensors, random_stories, tiny_model
from transformers import DynamicCache

LAST = torch.tensor([-1])


@pytest.fixture
def batch():
    return as_tensors(random_stories(0))


def change(name, index, value):
    def apply(batch):
        batch[name][index] = value

    return apply


@pytest.mark.parametrize(
    "corrupt, message",
    [
        (change("input_ids", (0, 0, 0), NUM_WORDS), f"`input_ids` holds {NUM_WORDS}"),
        (change("input_ids", (0, 0, 0), -1), "`input_ids` holds -1"),
        (change("labels", (0, 0), NUM_WORDS), f"`labels` holds {NUM_WORDS}"),
        (change("labels", (0, 0), -5), "`labels` holds -5"),
        (change("attention_mask", 1, 0), "Story 2 of the batch is empty"),
        (lambda b: b.update(attention_mask=b["attention_mask"][:, :, :-1]), "`attention_mask` must have the shape"),
        (lambda b: b.update(triple_mask=b["triple_mask"][..., :-1]), "`triple_mask` must be"),
        (lambda b: b.update(triple_ids=b["triple_ids"][..., :2]), "`triple_ids` must be"),
        (lambda b: b.update(triple_ids=b["triple_ids"][:, :-1]), "`triple_ids` must be"),
        (lambda b: b.update(triple_ids=None), "`triple_mask` was given without `triple_ids`"),
        (lambda b: b.update(input_ids=b["input_ids"].float()), "`input_ids` must hold whole numbers"),
        (lambda b: b.update(input_ids=[[1, 2]]), "`input_ids` must be a tensor"),
        (lambda b: b.update(input_ids=b["input_ids"][..., None]), "must be \\[stories, sentences, words\\]"),
        (lambda b: b.update(input_ids=b["input_ids"][:, :0]), "has no words"),
        (lambda b: b.update(input_ids=None), "`input_ids` is missing"),
        (lambda b: b.update(labels=b["labels"][:-1]), "`labels` must be \\[stories, words\\] for 3 stories"),
        (lambda b: b.update(labels=None), "Give `labels` or `decoder_input_ids`"),
        (lambda b: b.update(decoder_input_ids=b["labels"][:, :1].abs()), "must have one shape"),
        (
            lambda b: b.update(decoder_input_ids=b["labels"].abs() * 0, labels=b["labels"][:, :1]),
            "must have one shape",
        ),
        (lambda b: b.update(decoder_attention_mask=b["labels"][:, :-1]), "`decoder_attention_mask` must have the"),
        (lambda b: b.update(decoder_attention_mask=(b["labels"] * 0).index_fill(1, LAST, 1)), "word behind padding"),
    ],
)
def test_tensors(batch, corrupt, message):
    corrupt(batch)
    with pytest.raises(ValueError, match=message):
        tiny_model()(**batch)


@pytest.mark.parametrize(
    "part, value, name",
    [(0, NUM_WORDS, "head"), (1, NUM_RELATIONS, "relation"), (2, -1, "tail")],
)
def test_triples_of_what_does_not_exist(batch, part, value, name):
    place = tuple(batch["triple_mask"].nonzero()[0].tolist())
    batch["triple_ids"][(*place, part)] = value
    with pytest.raises(ValueError, match=f"{name}.* holds {value}"):
        tiny_model()(**batch)
    tiny_model(knowledge=None)(**batch)  # which does not read them


def test_a_word_behind_padding(batch):
    batch["attention_mask"][0, 0] = torch.tensor([1, 0, *[1] * (batch["attention_mask"].shape[2] - 2)])
    batch["input_ids"].clamp_(min=4)
    with pytest.raises(ValueError, match="pad sentences on the right"):
        tiny_model()(**batch)


@pytest.mark.parametrize(
    "limit, message",
    [
        ({"max_sentences": 1}, "`config.max_sentences` allows 1"),
        ({"max_sentence_length": 1}, "`config.max_sentence_length` allows 1"),
        ({"max_triples": 1}, "`config.max_triples` allows 1"),
        ({"max_ending_length": 1}, "`config.max_ending_length` allows 1"),
    ],
)
def test_limits(batch, limit, message):
    with pytest.raises(ValueError, match=message):
        tiny_model(**limit)(**batch)


def test_a_cache_of_another_kind(batch):
    with pytest.raises(ValueError, match="`past_key_values` must be a `RecurrentCache`; got DynamicCache"):
        tiny_model()(**batch, past_key_values=DynamicCache())


def test_generate_refuses_the_same(batch):
    batch["input_ids"][0, 0, 0] = NUM_WORDS
    with pytest.raises(ValueError, match="`input_ids` holds"):
        tiny_model().generate(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"])
