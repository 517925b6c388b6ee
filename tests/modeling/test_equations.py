"""Every system against its equations, written out in loops: outputs, attentions, losses and gradients."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import run_system
from story_cases import (
    COPYING,
    END,
    INCREMENTAL,
    KNOWING,
    NUM_SLOTS,
    NUM_WORDS,
    START,
    UNKNOWN,
    as_tensors,
    batch_for,
    random_stories,
    stories_for,
    tail_forms,
    tiny_model,
    tiny_system,
    triple_weight,
)

from hf_storyend.systems import SYSTEMS

CLOSE = {"rtol": 1e-5, "atol": 1e-7}
every_system = pytest.mark.parametrize("name", SYSTEMS)
both_vectors = pytest.mark.parametrize("vector", ["state", "attentional"])


def run_both(name, seed, *, is_training=False, empty=True, weight=1.0, **settings):
    """The model and the reference on the same stories, both with gradients."""
    system, stories = SYSTEMS[name], stories_for(name, seed)
    model = tiny_system(name, seed=seed, attend_empty_graphs=empty, encoder_loss_weight=weight, **settings)
    output = model.train(is_training)(**as_tensors(stories), output_attentions=True, output_hidden_states=True)
    output.loss.backward()
    weights = {
        key.removeprefix("encoder."): parameter.detach().clone().requires_grad_()
        for key, parameter in model.named_parameters()
    }
    losses, endings = run_system(
        weights,
        system.story_encoder,
        system.knowledge,
        stories,
        num_slots=NUM_SLOTS if system.copy else None,
        start_id=START,
        end_id=END,
        unk_id=UNKNOWN,
        attend_empty_graphs=empty,
        encoder_loss_weight=weight,
        triple_weight=triple_weight,
        tail_forms=tail_forms if system.tail_pointer else None,
    )
    losses.loss.backward()
    return stories, model, output, weights, losses, endings


@every_system
@both_vectors
@settings(max_examples=6, derandomize=True)
@given(
    seed=st.integers(0, 10**6),
    num_layers=st.integers(1, 3),
    weight=st.sampled_from([0.5, 1.0]),
    is_training=st.booleans(),
    empty=st.booleans(),
    implementation=st.sampled_from(["fused", "eager"]),
)
def test_losses_and_all_gradients(name, vector, seed, num_layers, weight, is_training, empty, implementation):
    _, model, output, weights, losses, _ = run_both(
        name,
        seed,
        is_training=is_training,
        empty=empty,
        weight=weight,
        num_layers=num_layers,
        prediction_vector=vector,
        recurrence_implementation=implementation,
    )
    assert (output.logits is None) == is_training, "training needs no logits"
    torch.testing.assert_close(output.loss, losses.loss, **CLOSE)
    torch.testing.assert_close(output.ending_loss, losses.ending_loss, **CLOSE)
    assert (output.encoder_loss is None) == (losses.encoder_loss is None)
    if losses.encoder_loss is not None:
        torch.testing.assert_close(output.encoder_loss, losses.encoder_loss, **CLOSE)
    for key, parameter in model.named_parameters():
        expected = weights[key.removeprefix("encoder.")].grad
        expected = torch.zeros_like(parameter) if expected is None else expected
        torch.testing.assert_close(parameter.grad, expected, **CLOSE, msg=lambda text, key=key: f"{key}: {text}")


@every_system
@both_vectors
@pytest.mark.parametrize("empty", [True, False])
def test_outputs_and_attentions(name, vector, empty):
    stories, _, output, _, _, endings = run_both(name, len(name), empty=empty, prediction_vector=vector)
    assert output.logits.shape[2] == NUM_WORDS + NUM_SLOTS * SYSTEMS[name].copy
    num_words = output.encoder_state_attentions.shape[3]
    for b, ((sentences, _, ending, _), expected) in enumerate(zip(stories, endings, strict=True)):
        logits = output.logits[b, : len(ending)]
        if not SYSTEMS[name].copy:
            compare(logits, expected.logits)
        compare(logits.softmax(dim=-1), expected.probabilities)
        # The last sentence in incremental encoding, all words of the story in the baselines.
        at_words = list(range(len(sentences[-1])))
        if name not in INCREMENTAL:
            at_words = [i * num_words + j for i, sentence in enumerate(sentences) for j in range(len(sentence))]
        assert (output.knowledge_attentions is None) == (name not in KNOWING)
        compare(output.state_attentions[b, : len(ending), at_words], expected.attention)
        if name in KNOWING:
            compare(output.knowledge_attentions[b, : len(ending), at_words], expected.knowledge_attention)


@pytest.mark.parametrize("name", INCREMENTAL)
@both_vectors
def test_encoder_states_and_attentions(name, vector):
    stories, _, output, _, _, endings = run_both(name, 1, prediction_vector=vector)
    for b, ((sentences, graphs, _, _), ending) in enumerate(zip(stories, endings, strict=True)):
        for i, sentence in enumerate(sentences):
            expected, steps = ending.story, len(sentence) + 1
            compare(output.encoder_hidden_states[-1][b, i, :steps], expected.hidden_states[i])
            if i > 0:
                before = len(sentences[i - 1])
                states = output.encoder_state_attentions[b, i, :steps, :before]
                compare(states, expected.state_attention[i])
            if i > 0 and name in KNOWING:
                graph_attention = output.encoder_knowledge_attentions[b, i, :steps, :before]
                compare(graph_attention, expected.knowledge_attention[i])
            for j, graph in enumerate(graphs[i] if name in KNOWING else []):
                compare(output.triple_attentions[b, i, j, : len(graph)], expected.triple_attention[i][j])


@pytest.mark.parametrize("name", sorted(set(KNOWING) - set(INCREMENTAL)))
def test_triple_attentions_of_baselines(name):
    stories, _, output, _, _, endings = run_both(name, 2)
    for b, ((_, graphs, _, _), ending) in enumerate(zip(stories, endings, strict=True)):
        for i, sentence in enumerate(graphs):
            for j, graph in enumerate(sentence):
                compare(output.triple_attentions[b, i, j, : len(graph)], ending.story.triple_attention[i][j])


def compare(actual, expected):
    expected = torch.stack(expected) if isinstance(expected, list) else expected
    torch.testing.assert_close(actual, expected, **CLOSE)


@every_system
@both_vectors
def test_attention_is_a_distribution_over_real_words(name, vector):
    stories = stories_for(name, 1)
    model = tiny_system(name, prediction_vector=vector)
    output = model(**as_tensors(stories, extra_words=2), output_attentions=True)
    for attention in filter(lambda a: a is not None, (output.state_attentions, output.knowledge_attentions)):
        for b, (sentences, _, ending, _) in enumerate(stories):
            sums = attention[b].sum(-1)
            torch.testing.assert_close(sums[: len(ending)], torch.ones(len(ending), dtype=attention.dtype))
            assert (sums[len(ending) :] == 0).all(), "what is behind the ending is not read"
            if name in INCREMENTAL:
                assert (attention[b, :, len(sentences[-1]) :] == 0).all()
    assert (output.encoder_state_attentions[:, 0] == 0).all(), "the first sentence has nothing to attend to"


@every_system
def test_attention_is_that_of_the_state_after_the_step(name):
    """With an attentional vector, attention is reported as the prediction used it: step by step or all at once."""
    model, batch = tiny_system(name, prediction_vector="attentional"), batch_for(name, seed=5, num_stories=1)
    whole = model(**batch, output_attentions=True)
    encoded = model.get_encoder()(**{key: tensor for key, tensor in batch.items() if key != "labels"})
    cache, steps = None, []
    for word in model.prepare_decoder_input_ids_from_labels(batch["labels"]).unbind(1):
        output = model(
            encoder_outputs=encoded, decoder_input_ids=word[:, None], past_key_values=cache, output_attentions=True
        )
        cache = output.past_key_values
        steps.append(output.state_attentions)
    torch.testing.assert_close(torch.cat(steps, dim=1), whole.state_attentions)


def test_the_encoder_loss_can_be_switched_off():
    batch = as_tensors(random_stories(3))
    without = tiny_model(encoder_loss_weight=0.0)(**batch)
    assert without.encoder_loss is None
    torch.testing.assert_close(without.loss, without.ending_loss)
    torch.testing.assert_close(without.ending_loss, tiny_model(encoder_loss_weight=1.0)(**batch).ending_loss)


def test_a_sampled_encoder_loss_has_the_same_expectation_and_is_for_training_only():
    batch = as_tensors(random_stories(3))
    model = tiny_model(encoder_loss_sampling_ratio=0.25)
    whole = model(**batch)
    torch.testing.assert_close(whole.encoder_loss, tiny_model()(**batch).encoder_loss)
    torch.manual_seed(0)
    with torch.no_grad():
        sampled = torch.stack([model.train()(**batch).encoder_loss for _ in range(60)])
    assert len(sampled.unique()) > 10
    # Five standard errors.
    assert (sampled.mean() - whole.encoder_loss).abs() < 5 * sampled.std() / len(sampled) ** 0.5
    torch.testing.assert_close(model(**batch).ending_loss, whole.ending_loss)


def test_a_story_of_one_sentence_has_no_encoder_loss():
    output = tiny_model()(**as_tensors(random_stories(5, max_sentences=1)))
    assert output.encoder_loss == 0
    torch.testing.assert_close(output.loss, output.ending_loss)


def test_loss_is_divided_by_what_the_trainer_counted():
    batch = as_tensors(random_stories(2))
    model = tiny_model()
    num_labels = (batch["labels"] != -100).sum()
    torch.testing.assert_close(model(**batch, num_items_in_batch=2 * num_labels).loss, model(**batch).loss / 2)


@pytest.mark.parametrize("knowledge", ["graph_attention", "contextual_attention"])
def test_concepts_are_words(knowledge):
    """The vector of a word that occurs only as the tail of a triple affects the ending, and gets a gradient."""
    tail = NUM_WORDS - 1
    model, batch = tiny_model(knowledge=knowledge), as_tensors([([[5, 6]], [[[(5, 1, tail)], []]], [7, END])])
    output = model(**batch)
    output.loss.backward()
    assert model.encoder.embed_tokens.weight.grad[tail].abs().max() > 0
    model.encoder.embed_tokens.weight.data[tail] += 1.0
    assert not torch.allclose(output.logits, model(**batch).logits)


def test_stories_with_slots_are_among_the_cases():
    labels = torch.cat([batch_for(name, seed=3)["labels"].flatten() for name in COPYING])
    assert ((labels >= NUM_WORDS) & (labels < NUM_WORDS + NUM_SLOTS)).any()
