"""The model against the equations of the paper, written out in loops: outputs, attentions, losses and gradients."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import run_batch
from story_cases import END, KNOWLEDGE, NUM_WORDS, START, as_tensors, random_stories, tiny_model

CLOSE = {"rtol": 1e-5, "atol": 1e-7}


def run_both(knowledge, seed, num_layers=2, num_stories=3, weight=1.0, is_training=False, empty=True, **sizes):
    stories = random_stories(seed, num_stories, **sizes)
    model = tiny_model(
        seed=seed,
        knowledge=knowledge,
        num_layers=num_layers,
        encoder_loss_weight=weight,
        attend_empty_graphs=empty,
    )
    model.train(is_training)
    output = model(**as_tensors(stories), output_attentions=True, output_hidden_states=True)
    output.loss.backward()
    weights = {
        name.removeprefix("encoder."): parameter.detach().clone().requires_grad_()
        for name, parameter in model.named_parameters()
    }
    reference = run_batch(
        weights,
        stories,
        knowledge=knowledge,
        start_id=START,
        end_id=END,
        encoder_loss_weight=weight,
        attend_empty_graphs=empty,
    )
    reference[0].backward()
    return stories, model, output, weights, reference


@pytest.mark.parametrize("knowledge", KNOWLEDGE)
@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10**6),
    num_layers=st.integers(1, 3),
    weight=st.sampled_from([0.5, 1.0]),
    is_training=st.booleans(),
    empty=st.booleans(),
)
def test_losses_and_all_gradients(knowledge, seed, num_layers, weight, is_training, empty):
    _, model, output, weights, (loss, ending_loss, encoder_loss, _) = run_both(
        knowledge, seed, num_layers, weight=weight, is_training=is_training, empty=empty
    )
    assert (output.logits is None) == is_training, "training needs no logits"
    torch.testing.assert_close(output.loss, loss, **CLOSE)
    torch.testing.assert_close(output.ending_loss, ending_loss, **CLOSE)
    torch.testing.assert_close(output.encoder_loss, encoder_loss, **CLOSE)
    for name, parameter in model.named_parameters():
        expected = weights[name.removeprefix("encoder.")].grad
        expected = torch.zeros_like(parameter) if expected is None else expected
        torch.testing.assert_close(parameter.grad, expected, **CLOSE, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("knowledge", KNOWLEDGE)
@pytest.mark.parametrize("empty", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_outputs_and_attentions(knowledge, seed, empty):
    stories, _, output, _, (*_, reference) = run_both(knowledge, seed, empty=empty)
    for b, ((sentences, graphs, ending), expected) in enumerate(zip(stories, reference, strict=True)):
        last = len(sentences[-1])
        compare(output.logits[b, : len(ending)], expected.logits)
        compare(output.state_attentions[b, : len(ending), :last], expected.state_attention)
        if knowledge:
            compare(output.knowledge_attentions[b, : len(ending), :last], expected.knowledge_attention)
        for i, sentence in enumerate(sentences):
            steps = len(sentence) + 1
            compare(output.encoder_hidden_states[-1][b, i, :steps], expected.hidden_states[i])
            if i > 0:
                before = len(sentences[i - 1])
                states = output.encoder_state_attentions[b, i, :steps, :before]
                compare(states, expected.encoder_state_attention[i])
            if i > 0 and knowledge:
                reads = output.encoder_knowledge_attentions[b, i, :steps, :before]
                compare(reads, expected.encoder_knowledge_attention[i])
            for j, graph in enumerate(graphs[i] if knowledge else []):
                compare(output.triple_attentions[b, i, j, : len(graph)], expected.triple_attention[i][j])


def compare(actual, expected):
    expected = torch.stack(expected) if isinstance(expected, list) else expected
    torch.testing.assert_close(actual, expected, **CLOSE)


@pytest.mark.parametrize("knowledge", KNOWLEDGE)
def test_attention_is_a_distribution_over_real_words(knowledge):
    stories = random_stories(1)
    output = tiny_model(knowledge=knowledge)(**as_tensors(stories, extra_words=2), output_attentions=True)
    for attention in filter(lambda a: a is not None, (output.state_attentions, output.knowledge_attentions)):
        for b, (sentences, _, ending) in enumerate(stories):
            sums = attention[b].sum(-1)
            torch.testing.assert_close(sums[: len(ending)], torch.ones(len(ending), dtype=attention.dtype))
            assert (sums[len(ending) :] == 0).all(), "what is behind the ending is not read"
            assert (attention[b, :, len(sentences[-1]) :] == 0).all()
    assert (output.encoder_state_attentions[:, 0] == 0).all(), "the first sentence has nothing to attend to"


def test_the_encoder_loss_can_be_switched_off():
    batch = as_tensors(random_stories(3))
    without = tiny_model(encoder_loss_weight=0.0)(**batch)
    assert without.encoder_loss is None
    torch.testing.assert_close(without.loss, without.ending_loss)
    torch.testing.assert_close(without.ending_loss, tiny_model(encoder_loss_weight=1.0)(**batch).ending_loss)


def test_a_share_of_the_context_gives_the_same_encoder_loss_on_average_and_only_in_training():
    batch = as_tensors(random_stories(3))
    model = tiny_model(encoder_loss_share=0.25).eval()
    whole = model(**batch)
    torch.testing.assert_close(whole.encoder_loss, tiny_model()(**batch).encoder_loss)
    torch.manual_seed(0)
    with torch.no_grad():
        drawn = torch.stack([model.train()(**batch).encoder_loss for _ in range(200)])
    assert len(drawn.unique()) > 10
    # Five standard errors.
    assert (drawn.mean() - whole.encoder_loss).abs() < 5 * drawn.std() / len(drawn) ** 0.5
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
    """The vector of a word that stands only as the tail of a triple has a say in the ending, and learns from it."""
    tail = NUM_WORDS - 1
    model, batch = tiny_model(knowledge=knowledge), as_tensors([([[5, 6]], [[[(5, 1, tail)], []]], [7, END])])
    output = model(**batch)
    output.loss.backward()
    assert model.encoder.embed_tokens.weight.grad[tail].abs().max() > 0
    model.encoder.embed_tokens.weight.data[tail] += 1.0
    assert not torch.allclose(output.logits, model(**batch).logits)
