"""What never changes the result of any system: padding, other stories, empty sentences, precision, compiling."""

import logging

import pytest
import torch
from story_cases import (
    COPYING,
    KNOWING,
    START,
    TAIL_POINTING,
    as_tensors,
    batch_for,
    context_of,
    random_stories,
    stories_for,
    tiny_model,
    tiny_system,
)

from hf_storyend.systems import SYSTEMS

every_system = pytest.mark.parametrize("name", SYSTEMS)
both_vectors = pytest.mark.parametrize("vector", ["state", "attentional"])


@every_system
@pytest.mark.parametrize("padding", ["extra_sentences", "extra_words", "extra_triples"])
def test_padding_changes_nothing(name, padding):
    stories, model = stories_for(name, 0), tiny_system(name)
    plain, padded = model(**as_tensors(stories)), model(**as_tensors(stories, **{padding: 3}))
    torch.testing.assert_close(padded.logits, plain.logits)
    torch.testing.assert_close(padded.loss, plain.loss)


@every_system
@both_vectors
def test_empty_sentences_anywhere_change_nothing(name, vector):
    model, batch = tiny_system(name, prediction_vector=vector), batch_for(name, 1, num_stories=1)
    expected = model(**batch)
    for position in range(batch["input_ids"].shape[1] + 1):
        spread = {
            key: torch.cat((tensor[:, :position], torch.zeros_like(tensor[:, :1]), tensor[:, position:]), dim=1)
            for key, tensor in context_of(batch).items()
        }
        output = model(**spread, labels=batch["labels"])
        torch.testing.assert_close(output.logits, expected.logits)
        torch.testing.assert_close(output.loss, expected.loss)


@every_system
@both_vectors
def test_a_story_alone_and_in_a_padded_batch(name, vector):
    stories, model = stories_for(name, 2, num_stories=5), tiny_system(name, prediction_vector=vector)
    together = model(**as_tensors(stories, extra_sentences=1, extra_words=2, extra_triples=1)).logits
    for b, story in enumerate(stories):
        torch.testing.assert_close(together[b, : len(story[2])], model(**as_tensors([story])).logits[0])


@pytest.mark.parametrize("name", sorted({*KNOWING, *TAIL_POINTING}))
def test_knowledge_matters_and_may_be_missing(name):
    model, batch = tiny_system(name), batch_for(name, 3)
    masked = model(**{**batch, "triple_mask": torch.zeros_like(batch["triple_mask"])})
    missing = model(**{**batch, "triple_ids": None, "triple_mask": None})
    torch.testing.assert_close(missing.logits, masked.logits)
    known = model(**batch)
    assert not torch.allclose(missing.loss, known.loss) and not torch.allclose(missing.logits, known.logits)
    no_room = model(**{**batch, "triple_ids": batch["triple_ids"][..., :0, :], "triple_mask": None})
    torch.testing.assert_close(no_room.logits, masked.logits)


@pytest.mark.parametrize("knowledge", ["graph_attention", "contextual_attention"])
def test_without_triples_it_is_the_model_without_knowledge(knowledge):
    full, plain = tiny_model(knowledge=knowledge), tiny_model(knowledge=None)
    weights = {name: weight for name, weight in full.state_dict().items() if name in plain.state_dict()}
    merge = weights["encoder.attention.merge.weight"]
    weights["encoder.attention.merge.weight"] = merge[:, : plain.config.hidden_size]
    plain.load_state_dict(weights)
    batch = as_tensors(random_stories(6))
    batch["triple_mask"].zero_()
    torch.testing.assert_close(full(**batch).logits, plain(**batch).logits)


@every_system
def test_every_sentence_matters(name):
    model, batch = tiny_system(name), batch_for(name, 4, num_stories=1, max_sentences=4)
    expected = model(**batch).ending_loss
    for sentence in range(batch["input_ids"].shape[1]):
        changed = batch["input_ids"].clone()
        changed[0, sentence, 0] = (changed[0, sentence, 0] + 1).clamp(max=20)
        changed_copies = torch.where(batch["copy_ids"] < model.config.vocab_size, changed, batch["copy_ids"])
        output = model(**{**batch, "input_ids": changed, "copy_ids": changed_copies})
        assert not torch.equal(output.ending_loss, expected)


@every_system
@both_vectors
def test_all_weights_learn(name, vector):
    model = tiny_system(name, prediction_vector=vector).train()
    model(**batch_for(name, 5, num_stories=6)).loss.backward()
    for key, parameter in model.named_parameters():
        assert parameter.grad.abs().max() > 0, key


@every_system
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_one_word_no_triples_and_no_labels_stay_finite(name, dtype):
    """Defined values and finite gradients for all weights, which distributed training needs."""
    model = tiny_system(name, dtype).train()
    batch = batch_for(name, 7, max_words=1, max_triples=0)
    batch["labels"][0] = -100
    output = model(**batch)
    assert output.loss.isfinite()
    output.loss.backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())
    assert model(**{**batch, "labels": torch.full_like(batch["labels"], -100)}).ending_loss == 0


@pytest.mark.parametrize("name", sorted({*KNOWING, *TAIL_POINTING}))
def test_the_order_of_triples_does_not_matter(name):
    model, batch = tiny_system(name), batch_for(name, 8)
    names = ("triple_ids", "triple_mask", "triple_weights", "tail_form_ids")
    flipped = {**batch, **{name: batch[name].flip(3) for name in names}}
    torch.testing.assert_close(model(**flipped).logits, model(**batch).logits)


@every_system
@pytest.mark.parametrize("dtype, tolerance", [(torch.bfloat16, 0.1), (torch.float16, 0.02)])
def test_half_precision_is_close(name, dtype, tolerance):
    batch = batch_for(name, 9)
    model = tiny_system(name, torch.float32)
    expected = model(**batch)
    output = model.to(dtype)(**batch)
    assert output.logits.dtype == dtype and output.loss.isfinite()
    torch.testing.assert_close(output.logits.float(), expected.logits, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(output.loss.float(), expected.loss, rtol=tolerance, atol=tolerance)


@every_system
@both_vectors
def test_training_and_evaluation_have_the_same_loss(name, vector):
    """In training it is computed without holding logits."""
    model, batch = tiny_system(name, prediction_vector=vector), batch_for(name, 10)
    for part in ("loss", "ending_loss"):
        torch.testing.assert_close(model.train()(**batch)[part], model.eval()(**batch)[part])


@every_system
def test_dropout_acts_in_training_only(name):
    batch, model = batch_for(name, 11), tiny_system(name, dropout=0.5)
    torch.testing.assert_close(model(**batch).logits, tiny_system(name)(**batch).logits)
    model.train()
    torch.manual_seed(0)
    assert not torch.allclose(model(**batch).loss, model(**batch).loss)


@every_system
def test_flat_words_and_missing_triples_are_warned_of(name, caplog):
    logging.Logger.warning_once.cache_clear()
    model, batch = tiny_system(name), batch_for(name, 11, max_sentences=1)
    flat = {key: tensor if key == "labels" else tensor[:, 0] for key, tensor in batch.items()}
    torch.testing.assert_close(model(**flat).logits, model(**batch).logits)
    assert ["are read as stories of one sentence" in record.message for record in caplog.records] == [True]
    words = {key: batch[key] for key in ("input_ids", "attention_mask")}
    model(**words, decoder_input_ids=torch.full((len(batch["labels"]), 1), START))
    has_triples = model.config.knowledge or model.config.tail_pointer
    assert ("`triple_ids` is missing" in caplog.text) == bool(has_triples)


@every_system
def test_words_may_lie_anywhere_in_memory(name):
    model, batch = tiny_system(name), batch_for(name, 3)
    words = torch.arange(4, 4 + 5 * len(batch["input_ids"])).view(5, -1).remainder(20).T
    assert not words.is_contiguous()
    logits = [model(**context_of(batch), decoder_input_ids=ids).logits for ids in (words, words.contiguous())]
    assert torch.equal(*logits)


@every_system
@both_vectors
def test_an_encoded_story_can_be_scored_again(name, vector):
    """To compare many endings of one story: encode once, pass `encoder_outputs`."""
    model, batch = tiny_system(name, prediction_vector=vector), batch_for(name, 12)
    expected = model(**batch)
    for return_dict in (True, False):
        encoded = model.get_encoder()(**context_of(batch), return_dict=return_dict)
        output = model(encoder_outputs=encoded, labels=batch["labels"])
        torch.testing.assert_close(output.logits, expected.logits)
        torch.testing.assert_close(output.ending_loss, expected.ending_loss)
        assert output.encoder_loss is None


# Compiling takes seconds: every part once, the other systems are for the slow run.
COMPILED = {
    "seq2seq": "attentional",
    "hlstm-copy": "state",
    "hlstm-msa-ga": "attentional",
    "ie-msa-ca": "state",
    "ie-msa-ga-copy": "attentional",
}


@pytest.mark.parametrize(
    "name", [name if name in COMPILED else pytest.param(name, marks=pytest.mark.slow) for name in SYSTEMS]
)
def test_forward_compiles_as_one_graph(name):
    batch = batch_for(name, 13, num_stories=2, max_sentences=2, max_words=2, max_ending=2)
    model = tiny_system(name, prediction_vector=COMPILED.get(name, "attentional"))
    expected = model(**batch)
    expected.loss.backward()
    gradients = {key: parameter.grad for key, parameter in model.named_parameters()}
    model.zero_grad()
    torch.compiler.reset()
    # aot_eager traces forward and backward as inductor would, without a C++ compiler.
    output = torch.compile(model, backend="aot_eager", fullgraph=True)(**batch, use_cache=False)
    torch.testing.assert_close(output.loss, expected.loss)
    output.loss.backward()
    for key, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, gradients[key])


@pytest.mark.parametrize("name", COPYING)
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
