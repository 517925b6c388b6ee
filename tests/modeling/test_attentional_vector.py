"""Prediction from the attentional vector, for every system, against the equations written out in loops."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_systems import run_system
from story_cases import END, START, context_of
from system_cases import NUM_SLOTS, UNKNOWN, as_batch, batch_for, copy_stories, tiny_system

from hf_storyend import IncrementalEncoderConfig
from hf_storyend.systems import SYSTEMS

CLOSE = {"rtol": 1e-5, "atol": 1e-7}
PREDICTION_VECTORS = ("attentional", "state")

every_system = pytest.mark.parametrize("name", SYSTEMS)


@every_system
@pytest.mark.parametrize("vector", PREDICTION_VECTORS)
@settings(max_examples=5, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), num_layers=st.integers(1, 2), is_fused=st.booleans(), is_training=st.booleans())
def test_loss_and_all_gradients(name, vector, seed, num_layers, is_fused, is_training):
    system = SYSTEMS[name]
    implementation = "fused" if is_fused else "eager"
    model = tiny_system(
        name, num_layers=num_layers, prediction_vector=vector, recurrence_implementation=implementation
    )
    stories = copy_stories(seed, system.copy)
    loss = model.train(is_training)(**as_batch(stories)).loss
    loss.backward()
    weights = {
        key.removeprefix("encoder."): parameter.detach().clone().requires_grad_()
        for key, parameter in model.named_parameters()
    }
    expected, _ = run_system(
        weights,
        system.story_encoder,
        system.knowledge,
        stories,
        num_slots=NUM_SLOTS if system.copy else None,
        start_id=START,
        end_id=END,
        unk_id=UNKNOWN,
    )
    expected.backward()
    torch.testing.assert_close(loss, expected, **CLOSE)
    for key, parameter in model.named_parameters():
        gradient = weights[key.removeprefix("encoder.")].grad
        gradient = torch.zeros_like(parameter) if gradient is None else gradient
        torch.testing.assert_close(parameter.grad, gradient, **CLOSE, msg=lambda text, key=key: f"{key}: {text}")


@every_system
def test_a_story_alone_in_company_and_padded(name):
    model = tiny_system(name, prediction_vector="attentional")
    stories = copy_stories(2, SYSTEMS[name].copy, num_stories=4)
    together = model(**as_batch(stories, extra_sentences=1, extra_words=2, extra_triples=1)).logits
    for row, story in enumerate(stories):
        alone = model(**as_batch([story])).logits[0]
        torch.testing.assert_close(together[row, : len(story[2])], alone)


@every_system
@pytest.mark.parametrize("num_beams", [1, 3])
def test_cached_and_uncached_generation_agree(name, num_beams):
    model = tiny_system(name, prediction_vector="attentional")
    inputs = context_of(batch_for(name, seed=4))
    settings = {"num_beams": num_beams, "max_new_tokens": 6, "do_sample": False}
    cached = model.generate(**inputs, **settings, use_cache=True)
    torch.testing.assert_close(cached, model.generate(**inputs, **settings, use_cache=False))


@every_system
def test_attention_is_that_of_the_state_after_the_step(name):
    """Step by step or all steps at once, the reported attention is what the prediction was made from."""
    model, batch = tiny_system(name, prediction_vector="attentional"), batch_for(name, seed=5, num_stories=1)
    whole = model(**batch, output_attentions=True)
    encoded = model.get_encoder()(**context_of(batch))
    words = model.prepare_decoder_input_ids_from_labels(batch["labels"])
    cache, steps = None, []
    for word in words.unbind(1):
        output = model(
            encoder_outputs=encoded, decoder_input_ids=word[:, None], past_key_values=cache, output_attentions=True
        )
        cache = output.past_key_values
        steps.append(output.state_attentions)
    torch.testing.assert_close(torch.cat(steps, dim=1), whole.state_attentions)


def test_checkpoints_of_version_0_1_keep_their_meaning():
    """There, Seq2Seq alone had an attentional vector, and configurations did not say so."""
    for story_encoder, expected in (("incremental", "state"), ("hierarchical", "state"), ("sequence", "attentional")):
        old = {"model_type": "incremental_encoder", "story_encoder": story_encoder, "knowledge": None}
        assert IncrementalEncoderConfig.from_dict(old).prediction_vector == expected


def test_an_unknown_vector_is_refused():
    with pytest.raises(ValueError, match="`prediction_vector` must be one of 'attentional', 'state'"):
        IncrementalEncoderConfig(prediction_vector="luong")
