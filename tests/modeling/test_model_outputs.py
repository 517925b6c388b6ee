"""Names for attentions, what `generate()` is told, and masks that are not those of a story."""

import pytest
import torch
from story_cases import as_tensors, context_of, random_stories, tiny_model

from hf_storyend import IncrementalEncoderForEndingGeneration
from hf_storyend.modeling.modeling_incremental_encoder import EndingGenerationOutput


def test_a_system_without_knowledge_has_only_attentions_over_states():
    states = torch.ones(1)
    output = EndingGenerationOutput(encoder_attentions=(states,), cross_attentions=(states,))
    assert output.encoder_state_attentions is states and output.state_attentions is states
    assert output.encoder_knowledge_attentions is None
    assert output.triple_attentions is None
    assert output.knowledge_attentions is None


def test_a_system_with_knowledge_has_all():
    parts = tuple(torch.full((1,), float(number)) for number in range(3))
    output = EndingGenerationOutput(encoder_attentions=parts, decoder_attentions=(parts[1],))
    assert output.encoder_state_attentions is parts[0]
    assert output.encoder_knowledge_attentions is parts[1]
    assert output.triple_attentions is parts[2]
    assert output.knowledge_attentions is parts[1]


def test_without_attentions_there_are_none():
    output = EndingGenerationOutput()
    names = ("state", "knowledge", "encoder_state", "encoder_knowledge", "triple")
    assert [getattr(output, f"{name}_attentions") for name in names] == [None] * 5


def test_attentions_of_the_ending_stand_apart():
    model, batch = tiny_model(torch.float32), as_tensors(random_stories(0))
    output = model(**batch, output_attentions=True)
    assert len(output.cross_attentions) == len(output.decoder_attentions) == 1
    assert not torch.equal(output.cross_attentions[0], output.decoder_attentions[0])


def test_generate_makes_no_cache_of_its_own():
    """It asks the class."""
    assert IncrementalEncoderForEndingGeneration._supports_default_dynamic_cache() is False


def test_a_new_model_writes_at_most_thirty_words():
    """As the authors' code."""
    assert tiny_model().generation_config.max_new_tokens == 30


def test_gradient_checkpointing_is_refused():
    """The fused reading keeps what backward needs; there is nothing to trade."""
    with pytest.raises(ValueError, match="gradient checkpointing"):
        tiny_model().gradient_checkpointing_enable()


def test_only_words_not_read_yet_are_read():
    model = tiny_model()
    words = torch.tensor([[2, 5, 6], [2, 7, 8]])
    inputs = model.prepare_inputs_for_generation(words, next_sequence_length=1, use_cache=True, labels=words)
    assert inputs.keys() == {"decoder_input_ids", "decoder_attention_mask", "use_cache"}
    assert inputs["use_cache"] is True and inputs["decoder_attention_mask"] is None
    assert inputs["decoder_input_ids"].tolist() == [[6], [8]]
    assert torch.equal(model.prepare_inputs_for_generation(words)["decoder_input_ids"], words)


def test_a_mask_of_another_shape_is_refused_by_generate():
    model, story = tiny_model(torch.float32), context_of(as_tensors(random_stories(0)))
    mask = story["attention_mask"]
    with pytest.raises(ValueError, match="attention_mask"):
        model.generate(**{**story, "attention_mask": mask[..., None]})
