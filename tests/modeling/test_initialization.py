"""Initial weights: their scales, and the states they give."""

import pytest
import torch
from story_cases import batch_for, tiny_model, tiny_system

from hf_storyend.systems import SYSTEMS

SIZES = {"vocab_size": 300, "embedding_size": 40, "hidden_size": 64, "initializer_range": 0.5, "num_layers": 2}


@pytest.fixture(scope="module")
def weights() -> dict[str, torch.Tensor]:
    models = [tiny_model(knowledge=knowledge, **SIZES) for knowledge in ("graph_attention", "contextual_attention")]
    return {name: weight for model in models for name, weight in model.state_dict().items()}


@pytest.mark.parametrize(
    "name, deviation",
    [
        ("encoder.embed_tokens.weight", 0.5),
        ("lm_head.weight", 2 * 64**-0.5),
        ("encoder.lstm.word_gates.weight", 40**-0.5 / 0.5),
        ("encoder.lstm.step_gates.0.weight", 64**-0.5),
        ("encoder.lstm.step_gates.1.weight", 64**-0.5),
        ("encoder.attention.state_scorer.weight", 64**-0.5),
        ("encoder.attention.knowledge_scorer.weight", 80**-0.5),
        ("encoder.attention.merge.weight", 0.5 * 64**-0.5),
        ("encoder.knowledge.head_projection.weight", 40**-0.5),
    ],
)
def test_deviations(weights, name, deviation):
    assert weights[name].std().item() == pytest.approx(deviation, rel=0.1)
    assert weights[name].mean().abs().item() < deviation / 5


def test_gates_start_open_for_what_was_read_before(weights):
    """The forget gate's bias is 1, all others 0."""
    for name in ("word_gates", "step_gates.1"):
        input_gate, forget_gate, candidate, output_gate = weights[f"encoder.lstm.{name}.bias"].chunk(4)
        assert torch.equal(forget_gate, torch.ones_like(forget_gate))
        assert not input_gate.any() and not candidate.any() and not output_gate.any()


def test_other_biases_are_zero(weights):
    for name in ("lm_head.bias", "encoder.attention.merge.bias", "encoder.knowledge.forward_reader.bias_ih"):
        assert not weights[name].any(), name


def test_readers_of_triples_are_uniform(weights):
    weight = weights["encoder.knowledge.backward_reader.weight_ih"]  # [3E, E]
    bound = (6 / (40 + 3 * 40)) ** 0.5
    assert weight.abs().max() <= bound
    assert weight.std().item() == pytest.approx(bound / 3**0.5, rel=0.1)


@pytest.mark.parametrize("name", SYSTEMS)
def test_initial_states_are_neither_dead_nor_wild(name):
    """Words reach the state and the vocabulary before anything is learnt."""
    model = tiny_system(name, torch.float32, hidden_size=64, embedding_size=32)
    batch = batch_for(name, 1, num_stories=8)
    output = model(**batch, output_hidden_states=True)
    assert 0.02 < output.decoder_hidden_states[-1].std() < 0.8
    words = output.logits[..., : model.config.vocab_size]
    assert 0.05 < words.std() < 3.0
