"""The teacher-forced pass measures what generation does, and leaves the model as it was."""

from __future__ import annotations

import pytest
import torch

from hf_storyend.explanation import explain
from hf_storyend.explanation.inference import generate_endings, teacher_forced_pass
from hf_storyend.explanation.story import tokenize_story
from hf_storyend.systems import SYSTEMS

GENERATION = {"max_new_tokens": 6}
KEEP_STEPS = {"return_dict_in_generate": True, "output_attentions": True, "output_logits": True}


def stepwise_knowledge_attention(model, story, ids):
    """Knowledge attention [T, L] or [T, K * L], one word after the other; `generate()` does not return it."""
    encoded, cache, steps = model.encoder(**story.tensors), None, []
    for word_id in [model.config.decoder_start_token_id, *ids[:-1]]:
        inputs = {"decoder_input_ids": torch.tensor([[word_id]]), "past_key_values": cache, "output_attentions": True}
        output = model(encoder_outputs=encoded, **inputs, use_cache=True)
        cache = output.past_key_values
        steps.append(output.knowledge_attentions[0, 0])
    return torch.stack(steps)


def over_story(weights, system):
    """The weights [T, K, L] as the model orders them: over the last sentence or over the whole story."""
    return weights[:, -1] if system.startswith("ie") else weights.flatten(1)


@pytest.mark.parametrize("system", SYSTEMS)
def test_same_attention_and_probabilities_as_greedy_generation(system, make_system, tokenizer, story):
    model = make_system(system)
    tokenized = tokenize_story(model, tokenizer, story)
    steps = model.generate(**tokenized.tensors, **GENERATION, **KEEP_STEPS)
    (ids,) = generate_endings(model, tokenized, **GENERATION)
    assert ids == steps.sequences[0, 1:].tolist()
    output = teacher_forced_pass(model, tokenized, ids)
    for number, word_id in enumerate(ids):
        given = steps.cross_attentions[number][0].flatten()  # of the one layer that attends
        torch.testing.assert_close(over_story(output.state_attention, system)[number], given, atol=1e-6, rtol=1e-4)
        probability = steps.logits[number][0].softmax(dim=-1)[word_id]
        assert output.log_probabilities[number].exp() == pytest.approx(float(probability), rel=1e-4)
    if SYSTEMS[system].knowledge:
        with torch.no_grad():
            given = stepwise_knowledge_attention(model, tokenized, ids)
        torch.testing.assert_close(over_story(output.knowledge_attention, system), given, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("system", ["seq2seq", "ie-msa-ca-copy"])
def test_same_attention_and_probabilities_as_the_best_beam(system, make_system, tokenizer, story):
    model, settings = make_system(system), {**GENERATION, "num_beams": 3}
    tokenized = tokenize_story(model, tokenizer, story)
    steps = model.generate(**tokenized.tensors, **settings, **KEEP_STEPS)
    rows, (ids,) = steps.beam_indices[0].tolist(), generate_endings(model, tokenized, **settings)
    output = teacher_forced_pass(model, tokenized, ids)
    for number, word_id in enumerate(ids):
        given = steps.cross_attentions[number][0][rows[number]].flatten()
        torch.testing.assert_close(over_story(output.state_attention, system)[number], given, atol=1e-6, rtol=1e-4)
        probability = steps.logits[number][rows[number]].softmax(dim=-1)[word_id]
        assert output.log_probabilities[number].exp() == pytest.approx(float(probability), rel=1e-4)


@pytest.mark.parametrize("system", ["hlstm-copy", "ie-msa-ca-copy"])
def test_all_probability_of_a_model_that_only_copies_comes_from_the_story(system, make_system, tokenizer, story):
    model = make_system(system)
    with torch.no_grad():
        model.lm_head.weight.zero_()
        model.lm_head.bias.fill_(-30)
    for word in explain(model, tokenizer, story, **GENERATION).words:
        assert sum(place.share for place in word.sources.story) == pytest.approx(1, abs=1e-4)
        assert {place.word.lower() for place in word.sources.story} == {word.word.lower()}


def test_the_model_keeps_its_mode_and_gets_no_gradients(make_system, tokenizer, story):
    model = make_system("ie-msa-ga", dropout=0.5).train()
    first, second = (explain(model, tokenizer, story, **GENERATION) for _ in range(2))
    assert model.training and first == second
    assert all(parameter.grad is None for parameter in model.parameters())
