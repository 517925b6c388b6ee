"""Outputs: names for attentions, fields of their own, and tuples that map back to fields."""

from itertools import product

import pytest
import torch
from story_cases import KNOWING, as_tensors, batch_for, context_of, random_stories, tiny_model, tiny_system

from hf_storyend.modeling.modeling_incremental_encoder import EndingGenerationOutput, StoryEncoderOutput
from hf_storyend.systems import SYSTEMS

FLAGS = [{"output_attentions": a, "output_hidden_states": h} for a, h in product([True, False], repeat=2)]


def test_a_system_without_knowledge_has_only_attentions_over_states():
    states = torch.ones(1)
    output = EndingGenerationOutput(encoder_attentions=(states,), cross_attentions=(states,))
    assert output.encoder_state_attentions is states and output.state_attentions is states
    assert output.encoder_knowledge_attentions is None
    assert output.triple_attentions is None
    assert output.knowledge_attentions is None


def test_a_system_with_knowledge_has_all():
    parts = tuple(torch.full((1,), float(number)) for number in range(3))
    output = EndingGenerationOutput(encoder_attentions=parts, knowledge_attentions=parts[1])
    assert output.encoder_state_attentions is parts[0]
    assert output.encoder_knowledge_attentions is parts[1]
    assert output.triple_attentions is parts[2]
    assert output.knowledge_attentions is parts[1]


def test_without_attentions_there_are_none():
    output = EndingGenerationOutput()
    names = ("state", "knowledge", "encoder_state", "encoder_knowledge", "triple")
    assert [getattr(output, f"{name}_attentions") for name in names] == [None] * 5


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("flags", FLAGS)
def test_fields_are_filled_as_asked_for(name, flags):
    model, batch = tiny_system(name), batch_for(name, 0)
    output = model(**batch, **flags)
    has_attentions, has_states = flags.values()
    assert output.decoder_attentions is None, "there is no self-attention"
    assert (output.cross_attentions is not None) == (output.state_attentions is not None) == has_attentions
    assert (output.encoder_attentions is not None) == has_attentions
    assert (output.knowledge_attentions is not None) == (has_attentions and name in KNOWING)
    assert (output.triple_attentions is not None) == (has_attentions and name in KNOWING)
    if output.knowledge_attentions is not None:
        assert output.knowledge_attentions.shape == output.state_attentions.shape
        assert not torch.equal(output.knowledge_attentions, output.state_attentions)
    assert (output.decoder_hidden_states is not None) == (output.encoder_hidden_states is not None) == has_states
    if has_states:
        num_layers = model.config.num_layers
        levels = 2 if SYSTEMS[name].story_encoder == "hierarchical" else 1
        assert len(output.decoder_hidden_states) == 1 + num_layers
        assert len(output.encoder_hidden_states) == 1 + levels * num_layers


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("flags", FLAGS)
def test_an_encoded_story_as_tuple_maps_back_to_every_field(name, flags):
    """With and without attentions, hidden states, copying and knowledge: None keeps the place of its field."""
    encoder, batch = tiny_system(name).get_encoder(), context_of(batch_for(name, 1))
    named = encoder(**batch, **flags)
    plain = encoder(**batch, **flags, return_dict=False)
    assert isinstance(plain, tuple) and len(plain) == 19
    again = StoryEncoderOutput.from_tuple(plain)
    assert list(again) == list(named)
    for key, value in named.items():
        torch.testing.assert_close(again[key], value, rtol=0, atol=0)
    assert (again.attentions is not None, again.hidden_states is not None) == tuple(flags.values())
    assert (again.copy_memory is not None) == SYSTEMS[name].copy
    assert (again.graph_vectors is not None) == (again.memory.knowledge_keys is not None) == (name in KNOWING)
    assert (again.sentence_states is not None) == (SYSTEMS[name].story_encoder == "hierarchical")


@pytest.mark.parametrize("name", ["ie-msa-ca-copy", "hlstm", "seq2seq"])
@pytest.mark.parametrize("flags", FLAGS)
def test_a_story_encoded_as_tuple_keeps_its_attentions(name, flags):
    model, batch = tiny_system(name), batch_for(name, 1)
    encoded = model.get_encoder()(**context_of(batch), **flags, return_dict=False)
    output, expected = model(encoder_outputs=encoded, labels=batch["labels"], **flags), model(**batch, **flags)
    for key in ("logits", "encoder_last_hidden_state", "encoder_hidden_states", "encoder_attentions"):
        torch.testing.assert_close(output[key], expected[key]) if key in expected else None
        assert (key in output) == (key in expected)


def test_a_tuple_of_another_length_is_refused():
    model, batch = tiny_model(), as_tensors(random_stories(1))
    encoded = model.get_encoder()(**context_of(batch), return_dict=False)
    with pytest.raises(ValueError, match="`encoder_outputs` as a tuple has 19 entries, None included; got 18"):
        model(encoder_outputs=encoded[:-1], labels=batch["labels"])


def test_outputs_as_tuple_and_by_name():
    model, batch = tiny_model(), as_tensors(random_stories(0))
    named = model(**batch, output_attentions=True, output_hidden_states=True)
    plain = model(**batch, output_attentions=True, output_hidden_states=True, return_dict=False)
    assert torch.equal(plain[0], named.loss) and torch.equal(plain[1], named.logits)
    assert len(plain) == len(named.to_tuple())
    assert len(named.decoder_hidden_states) == 3 and len(named.encoder_hidden_states) == 3
    bare = model(**batch)
    assert bare.encoder_attentions is None and bare.state_attentions is None and bare.triple_attentions is None
    assert model(**batch, use_cache=False).past_key_values is None


def test_the_configuration_can_ask_for_attentions():
    model, batch = tiny_model(output_attentions=True, output_hidden_states=True), as_tensors(random_stories(0))
    output = model(**batch)
    assert output.knowledge_attentions is not None and output.decoder_hidden_states is not None
    assert model(**batch, output_attentions=False).cross_attentions is None
