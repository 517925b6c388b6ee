"""The baselines: what is theirs alone. Equations, invariants and generation are tested for all systems at once."""

import pytest
import torch
from story_cases import as_tensors, batch_for, context_of, random_stories, tiny_config, tiny_model, tiny_system

from hf_storyend import IncrementalEncoderForEndingGeneration
from hf_storyend.systems import SYSTEMS


def test_seq2seq_has_no_knowledge():
    with pytest.raises(ValueError, match="`story_encoder='sequence'` reads no triples"):
        IncrementalEncoderForEndingGeneration(tiny_config(story_encoder="sequence"))


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_system_predicts_from_the_attentional_vector_unless_told_otherwise(name):
    assert tiny_system(name).encoder.attentional is not None
    assert tiny_system(name, prediction_vector="state").encoder.attentional is None


@pytest.mark.parametrize("name", ["hlstm", "hlstm-msa-ca", "seq2seq"])
def test_encoders_attend_to_nothing_but_triples(name):
    model, batch = tiny_system(name), batch_for(name, 0)
    attentions = model.encoder(**context_of(batch), output_attentions=True).attentions
    batch_size, num_sentences, num_words = batch["input_ids"].shape
    for attention in attentions[:2]:
        assert attention.shape == (batch_size, num_sentences, num_words + 1, num_words) and not attention.any()


def test_hidden_states_of_both_levels():
    model, batch = tiny_system("hlstm"), batch_for("hlstm", 0)
    words, *levels = model.encoder(**context_of(batch), output_hidden_states=True).hidden_states
    batch_size, num_sentences, num_words = batch["input_ids"].shape
    assert words.shape == (batch_size, num_sentences, num_words + 1, model.config.embedding_size)
    size = model.config.hidden_size
    assert [tuple(states.shape) for states in levels] == [
        *[(batch_size, num_sentences, num_words + 1, size)] * 2,
        *[(batch_size, num_sentences, size)] * 2,
    ]


def test_sentences_of_hlstm_are_encoded_independently():
    """On the word level no sentence waits for another; the sentence level carries them on."""
    model, batch = tiny_model(story_encoder="hierarchical", knowledge=None), as_tensors(random_stories(1))
    changed = {**batch, "input_ids": batch["input_ids"].clone()}
    changed["input_ids"][:, 0, 0] = 4 + (changed["input_ids"][:, 0, 0] + 1) % 10
    before, after = (
        model.encoder(**context_of(one), output_hidden_states=True).hidden_states for one in (batch, changed)
    )
    torch.testing.assert_close(before[2][:, 1:], after[2][:, 1:])
    assert not torch.allclose(before[4][:, 1:], after[4][:, 1:])


@pytest.mark.parametrize("name", ["seq2seq", "hlstm-copy"])
def test_tied_word_vectors_and_another_vocabulary(name):
    model = tiny_system(name, torch.float32, embedding_size=7, tie_word_embeddings=True)
    assert model.lm_head.weight is model.encoder.embed_tokens.weight
    model.resize_token_embeddings(30)
    batch = batch_for(name, 3)
    moved = {key: torch.where(batch[key] >= 23, batch[key] + 7, batch[key]) for key in ("copy_ids", "labels")}
    assert model(**{**batch, **moved}).logits.shape[2] == model.config.num_output_words
