"""What must never change the result of any system: padding, company, empty sentences, precision, compiling."""

import pytest
import torch
from story_cases import context_of
from system_cases import COPYING, NEW_SYSTEMS, as_batch, batch_for, copy_stories, tiny_system

from hf_storyend.systems import SYSTEMS

every = pytest.mark.parametrize("name", NEW_SYSTEMS)
KNOWING = [name for name in NEW_SYSTEMS if SYSTEMS[name].knowledge]


@every
@pytest.mark.parametrize("padding", ["extra_sentences", "extra_words", "extra_triples"])
def test_padding_changes_nothing(name, padding):
    stories, model = copy_stories(0, SYSTEMS[name].copy), tiny_system(name)
    plain, padded = model(**as_batch(stories)), model(**as_batch(stories, **{padding: 3}))
    torch.testing.assert_close(padded.logits, plain.logits)
    torch.testing.assert_close(padded.loss, plain.loss)


@every
def test_empty_sentences_anywhere_change_nothing(name):
    model, batch = tiny_system(name), batch_for(name, 1, num_stories=1)
    expected = model(**batch)
    for position in range(batch["input_ids"].shape[1] + 1):
        spread = {
            key: torch.cat((tensor[:, :position], torch.zeros_like(tensor[:, :1]), tensor[:, position:]), dim=1)
            for key, tensor in context_of(batch).items()
        }
        output = model(**spread, labels=batch["labels"])
        torch.testing.assert_close(output.logits, expected.logits)
        torch.testing.assert_close(output.loss, expected.loss)


@every
def test_a_story_alone_and_in_company(name):
    stories, model = copy_stories(2, SYSTEMS[name].copy, num_stories=5), tiny_system(name)
    together = model(**as_batch(stories)).logits
    for b, story in enumerate(stories):
        torch.testing.assert_close(together[b, : len(story[2])], model(**as_batch([story])).logits[0])


@pytest.mark.parametrize("name", KNOWING)
def test_knowledge_matters_and_may_be_missing(name):
    model, batch = tiny_system(name), batch_for(name, 3)
    masked = model(**{**batch, "triple_mask": torch.zeros_like(batch["triple_mask"])})
    missing = model(**{**batch, "triple_ids": None, "triple_mask": None})
    torch.testing.assert_close(missing.logits, masked.logits)
    assert not torch.allclose(missing.loss, model(**batch).loss)


@every
def test_every_sentence_and_its_order_matter(name):
    model, batch = tiny_system(name), batch_for(name, 4, num_stories=1, max_sentences=4)
    expected = model(**batch).ending_loss
    for sentence in range(batch["input_ids"].shape[1]):
        changed = batch["input_ids"].clone()
        changed[0, sentence, 0] = (changed[0, sentence, 0] + 1).clamp(max=20)
        assert not torch.equal(model(**{**batch, "input_ids": changed}).ending_loss, expected)


@every
def test_all_weights_learn(name):
    model = tiny_system(name).train()
    model(**batch_for(name, 5, num_stories=6)).loss.backward()
    for key, parameter in model.named_parameters():
        assert parameter.grad.abs().max() > 0, key


@every
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_nothing_at_all_is_still_finite(name, dtype):
    model = tiny_system(name, dtype).train()
    batch = batch_for(name, 7, max_words=1, max_triples=0)
    batch["labels"][0] = -100
    output = model(**batch)
    output.loss.backward()
    assert output.loss.isfinite()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())
    assert model(**{**batch, "labels": torch.full_like(batch["labels"], -100)}).ending_loss == 0


@every
@pytest.mark.parametrize("dtype, tolerance", [(torch.bfloat16, 0.1), (torch.float16, 0.02)])
def test_half_precision_is_close(name, dtype, tolerance):
    batch = batch_for(name, 9)
    model = tiny_system(name, torch.float32)
    expected = model(**batch).logits
    logits = model.to(dtype)(**batch).logits
    assert logits.dtype == dtype
    torch.testing.assert_close(logits.float(), expected, rtol=tolerance, atol=tolerance)


@every
def test_training_and_evaluation_have_one_loss(name):
    model, batch = tiny_system(name), batch_for(name, 10)
    torch.testing.assert_close(model.train()(**batch).loss, model.eval()(**batch).loss)


@every
def test_dropout_acts_in_training_only(name):
    batch, model = batch_for(name, 11), tiny_system(name, dropout=0.5)
    torch.testing.assert_close(model(**batch).logits, tiny_system(name)(**batch).logits)
    model.train()
    assert not torch.allclose(model(**batch).loss, model(**batch).loss)


@every
def test_an_encoded_story_can_be_scored_again(name):
    model, batch = tiny_system(name), batch_for(name, 12)
    encoded = model.get_encoder()(**context_of(batch))
    expected = model(**batch)
    torch.testing.assert_close(model(encoder_outputs=encoded, labels=batch["labels"]).logits, expected.logits)
    as_tuple = model.get_encoder()(**context_of(batch), return_dict=False)
    torch.testing.assert_close(model(encoder_outputs=as_tuple, labels=batch["labels"]).logits, expected.logits)


@every
def test_forward_compiles_as_one_graph(name):
    batch = batch_for(name, 13, num_stories=2, max_sentences=2, max_words=2, max_ending=2)
    model = tiny_system(name)
    expected = model(**batch)
    expected.loss.backward()
    gradients = {key: parameter.grad for key, parameter in model.named_parameters()}
    model.zero_grad()
    torch.compiler.reset()
    output = torch.compile(model, backend="aot_eager", fullgraph=True)(**batch, use_cache=False)
    torch.testing.assert_close(output.loss, expected.loss)
    output.loss.backward()
    for key, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, gradients[key])


@pytest.mark.parametrize("name", ["hlstm-copy", "ie-msa-ca-copy"])
def test_words_can_be_copied_without_copy_ids(name):
    """Then those of the vocabulary only, under their own ids."""
    model, batch = tiny_system(name), batch_for(name, 14)
    batch["labels"] = batch["labels"].where(batch["labels"] < model.config.vocab_size, 5)
    without = {key: tensor for key, tensor in batch.items() if key != "copy_ids"}
    torch.testing.assert_close(model(**without).loss, model(**{**batch, "copy_ids": batch["input_ids"]}).loss)


@pytest.mark.parametrize("name", COPYING)
def test_the_number_of_a_slot_does_not_matter(name):
    model, batch = tiny_system(name), batch_for(name, 15)
    first, num_slots = model.config.vocab_size, model.config.num_copy_slots

    def turned(ids):
        return torch.where(ids >= first, first + (ids - first + 1) % num_slots, ids)

    output = model(**{**batch, "copy_ids": turned(batch["copy_ids"]), "labels": turned(batch["labels"])})
    expected = model(**batch)
    torch.testing.assert_close(output.loss, expected.loss)
    torch.testing.assert_close(output.logits[..., first:].roll(-1, dims=2), expected.logits[..., first:])
