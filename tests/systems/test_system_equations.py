"""Every system against its equations, written out in loops: losses, probabilities, attentions and gradients."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_systems import run_system
from story_cases import END, NUM_WORDS, START
from system_cases import COPYING, NEW_SYSTEMS, NUM_SLOTS, UNKNOWN, as_batch, copy_stories, tiny_system

from hf_storyend.systems import SYSTEMS

CLOSE = {"rtol": 1e-5, "atol": 1e-7}


def run_both(name, seed, is_training=False, num_layers=2, empty=True, **sizes):
    system = SYSTEMS[name]
    stories = copy_stories(seed, system.copy, **sizes)
    model = tiny_system(name, seed=seed, num_layers=num_layers, attend_empty_graphs=empty).train(is_training)
    output = model(**as_batch(stories), output_attentions=True)
    output.loss.backward()
    weights = {
        key.removeprefix("encoder."): parameter.detach().clone().requires_grad_()
        for key, parameter in model.named_parameters()
    }
    loss, endings = run_system(
        weights,
        system.story_encoder,
        system.knowledge,
        stories,
        num_slots=NUM_SLOTS if system.copy else None,
        start_id=START,
        end_id=END,
        unk_id=UNKNOWN,
        attend_empty_graphs=empty,
    )
    loss.backward()
    return stories, model, output, weights, loss, endings


@pytest.mark.parametrize("name", NEW_SYSTEMS)
@settings(max_examples=10, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), num_layers=st.integers(1, 3), is_training=st.booleans(), empty=st.booleans())
def test_losses_and_all_gradients(name, seed, num_layers, is_training, empty):
    _, model, output, weights, loss, _ = run_both(name, seed, is_training, num_layers, empty)
    torch.testing.assert_close(output.loss, loss, **CLOSE)
    for key, parameter in model.named_parameters():
        expected = weights[key.removeprefix("encoder.")].grad
        expected = torch.zeros_like(parameter) if expected is None else expected
        torch.testing.assert_close(parameter.grad, expected, **CLOSE, msg=lambda text, key=key: f"{key}: {text}")


@pytest.mark.parametrize("name", NEW_SYSTEMS)
@pytest.mark.parametrize("seed", range(3))
def test_probabilities_and_attentions(name, seed):
    stories, _, output, _, _, endings = run_both(name, seed)
    columns = NUM_WORDS + NUM_SLOTS * (name in COPYING)
    assert output.logits.shape[2] == columns
    for b, ((sentences, _, ending, _), expected) in enumerate(zip(stories, endings, strict=True)):
        steps = len(ending)
        probabilities = output.logits[b, :steps].softmax(dim=-1)
        torch.testing.assert_close(probabilities, torch.stack(expected.probabilities), **CLOSE)
        is_incremental = SYSTEMS[name].story_encoder == "incremental"
        num_words = output.encoder_state_attentions.shape[3]
        at_words = words_of_last(sentences) if is_incremental else words_of_all(sentences, num_words)
        for actual, wanted in (
            (output.state_attentions, expected.attention),
            (output.knowledge_attentions, expected.knowledge_attention),
        ):
            if not wanted:
                assert actual is None
                continue
            torch.testing.assert_close(actual[b, :steps, at_words], torch.stack(wanted), **CLOSE)
            sums = actual[b, :steps].sum(dim=1)
            torch.testing.assert_close(sums, torch.ones_like(sums), msg="padding gets nothing")


def words_of_last(sentences):
    return list(range(len(sentences[-1])))


def words_of_all(sentences, num_words):
    return [i * num_words + j for i, sentence in enumerate(sentences) for j in range(len(sentence))]
