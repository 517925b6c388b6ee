"""What must never change the result: padding, company in the batch, empty sentences, absent knowledge."""

import pytest
import torch
from story_cases import KNOWLEDGE, as_tensors, context_of, random_stories, tiny_model

both = pytest.mark.parametrize("knowledge", KNOWLEDGE)


@both
@pytest.mark.parametrize("padding", ["extra_sentences", "extra_words", "extra_triples"])
def test_padding_changes_nothing(knowledge, padding):
    stories, model = random_stories(0), tiny_model(knowledge=knowledge)
    plain, padded = model(**as_tensors(stories)), model(**as_tensors(stories, **{padding: 3}))
    torch.testing.assert_close(padded.logits, plain.logits)
    torch.testing.assert_close(padded.loss, plain.loss)


@both
def test_empty_sentences_anywhere_change_nothing(knowledge):
    stories, model = random_stories(1, num_stories=1, max_sentences=4), tiny_model(knowledge=knowledge)
    batch = as_tensors(stories)
    expected = model(**batch)
    for position in range(len(stories[0][0]) + 1):
        spread = {
            name: torch.cat((tensor[:, :position], torch.zeros_like(tensor[:, :1]), tensor[:, position:]), dim=1)
            for name, tensor in context_of(batch).items()
        }
        output = model(**spread, labels=batch["labels"])
        torch.testing.assert_close(output.logits, expected.logits)
        torch.testing.assert_close(output.loss, expected.loss)


@both
def test_a_story_alone_and_in_company(knowledge):
    stories, model = random_stories(2, num_stories=5), tiny_model(knowledge=knowledge)
    together = model(**as_tensors(stories)).logits
    for b, story in enumerate(stories):
        torch.testing.assert_close(together[b, : len(story[2])], model(**as_tensors([story])).logits[0])


@pytest.mark.parametrize("knowledge", ["graph_attention", "contextual_attention"])
def test_missing_triples_mean_no_knowledge(knowledge):
    model, batch = tiny_model(knowledge=knowledge), as_tensors(random_stories(3))
    masked = model(**{**batch, "triple_mask": torch.zeros_like(batch["triple_mask"])})
    missing = model(**{name: batch[name] for name in ("input_ids", "attention_mask", "labels")})
    torch.testing.assert_close(missing.logits, masked.logits)
    assert not torch.allclose(missing.logits, model(**batch).logits), "knowledge should matter when it is there"
    no_room = model(**{**batch, "triple_ids": batch["triple_ids"][..., :0, :], "triple_mask": None})
    torch.testing.assert_close(no_room.logits, masked.logits)


@pytest.mark.parametrize("knowledge", ["graph_attention", "contextual_attention"])
def test_without_triples_it_is_the_model_without_knowledge(knowledge):
    full, plain = tiny_model(knowledge=knowledge), tiny_model(knowledge=None)
    weights = {name: weight for name, weight in full.state_dict().items() if name in plain.state_dict()}
    weights["encoder.attention.merge.weight"] = weights["encoder.attention.merge.weight"][
        :, : plain.config.hidden_size
    ]
    plain.load_state_dict(weights)
    batch = as_tensors(random_stories(6))
    batch["triple_mask"].zero_()
    torch.testing.assert_close(full(**batch).logits, plain(**batch).logits)


@both
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_nothing_at_all_is_still_finite(knowledge, dtype):
    """One word, no triples, no labels that count: defined values and finite gradients."""
    model = tiny_model(dtype, knowledge=knowledge).train()
    batch = as_tensors(random_stories(7, max_words=1, max_triples=0))
    batch["labels"][0] = -100
    output = model(**batch)
    assert output.loss.isfinite()
    output.loss.backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())
    assert model(**{**batch, "labels": torch.full_like(batch["labels"], -100)}).ending_loss == 0


@both
def test_the_order_of_triples_does_not_matter(knowledge):
    model, batch = tiny_model(knowledge=knowledge), as_tensors(random_stories(8))
    flipped = {**batch, "triple_ids": batch["triple_ids"].flip(3), "triple_mask": batch["triple_mask"].flip(3)}
    torch.testing.assert_close(model(**flipped).logits, model(**batch).logits)


@both
@pytest.mark.parametrize("dtype, tolerance", [(torch.bfloat16, 0.1), (torch.float16, 0.02)])
def test_half_precision_is_close(knowledge, dtype, tolerance):
    batch = as_tensors(random_stories(9))
    model = tiny_model(torch.float32, knowledge=knowledge)
    expected = model(**batch).logits
    logits = model.to(dtype)(**batch).logits
    assert logits.dtype == dtype
    torch.testing.assert_close(logits.float(), expected, rtol=tolerance, atol=tolerance)


def test_dropout_acts_in_training_only():
    batch = as_tensors(random_stories(10))
    model = tiny_model(dropout=0.5)
    torch.testing.assert_close(model(**batch).logits, tiny_model(dropout=0.0)(**batch).logits)
    model.train()
    torch.manual_seed(0)
    first = model(**batch).loss
    assert not torch.allclose(first, model(**batch).loss)


def test_two_dimensions_are_stories_of_one_sentence():
    model, batch = tiny_model(), as_tensors(random_stories(11, max_sentences=1))
    flat = {name: tensor[:, 0] if name != "labels" else tensor for name, tensor in batch.items()}
    torch.testing.assert_close(model(**flat).logits, model(**batch).logits)


@both
def test_an_encoded_story_can_be_scored_again(knowledge):
    """What comparing many endings of one story needs: encode once, pass `encoder_outputs`."""
    model, batch = tiny_model(knowledge=knowledge), as_tensors(random_stories(12))
    encoded = model.get_encoder()(**context_of(batch))
    output = model(encoder_outputs=encoded, labels=batch["labels"])
    expected = model(**batch)
    torch.testing.assert_close(output.ending_loss, expected.ending_loss)
    assert output.encoder_loss is None
    as_tuple = model.get_encoder()(**context_of(batch), return_dict=False)
    torch.testing.assert_close(model(encoder_outputs=as_tuple, labels=batch["labels"]).logits, expected.logits)
