"""
What transformers' own tests ask of every model that generates, held by us, for every system.

What other files of this folder check is not repeated here; docs/ecosystem.md lists what does not apply, and why.
"""

import copy
import inspect

import pytest
import torch
from story_cases import END, PADDING, START, as_tensors, batch_for, context_of, random_stories, tiny_model, tiny_system
from transformers import GenerationConfig, GenerationMixin
from transformers.generation import GenerateBeamEncoderDecoderOutput, GenerateEncoderDecoderOutput

from hf_storyend import IncrementalEncoderConfig, IncrementalEncoderForEndingGeneration
from hf_storyend.modeling.modeling_incremental_encoder import RecurrentCache
from hf_storyend.systems import SYSTEMS

# One of every kind; the others are slow tests.
KINDS = {"seq2seq", "hlstm-copy", "ie-msa-ga", "ie-copy-tails"}
every_system = pytest.mark.parametrize(
    "name", [name if name in KINDS else pytest.param(name, marks=pytest.mark.slow) for name in SYSTEMS]
)
NUM_STORIES, NUM_STEPS = 3, 4


# Configuration.


def test_the_configuration_is_that_of_any_model(tmp_path):
    config = IncrementalEncoderConfig(vocab_size=30, hidden_size=6, embedding_size=4, num_layers=2)
    for name in ("hidden_size", "vocab_size", "num_hidden_layers"):
        setattr(config, name, 7)
        assert getattr(config, name) == 7 and getattr(IncrementalEncoderConfig(**{name: 7}), name) == 7
    common = {
        "output_attentions": True, "output_hidden_states": True, "return_dict": False, "id2label": {0: "a", 1: "b"},
        "problem_type": "regression", "chunk_size_feed_forward": 2, "architectures": ["Other"], "dtype": "bfloat16",
    }  # fmt: skip
    given = IncrementalEncoderConfig(**common)
    for folder in (tmp_path, tmp_path / "sub"):
        given.save_pretrained(folder)
    for read in (
        IncrementalEncoderConfig.from_pretrained(tmp_path),
        IncrementalEncoderConfig.from_pretrained(tmp_path, subfolder="sub"),
        IncrementalEncoderConfig.from_json_file(tmp_path / "config.json"),
        copy.deepcopy(given),
    ):
        assert read.to_dict() == given.to_dict() and read.output_hidden_states and read.num_labels == 2
    assert IncrementalEncoderConfig.from_pretrained(tmp_path, hidden_size=9).hidden_size == 9
    assert IncrementalEncoderConfig().is_encoder_decoder


# Weights.


@every_system
def test_a_model_made_from_no_weights_is_a_new_one(name):
    """No file, so none that lacks them: all are initialised, on the meta device first, as in a model that is made."""
    config = tiny_system(name).config
    torch.manual_seed(0)
    made = IncrementalEncoderForEndingGeneration(config)
    torch.manual_seed(0)
    loaded = IncrementalEncoderForEndingGeneration.from_pretrained(None, config=config, state_dict={})
    for key, weight in made.state_dict().items():
        other = loaded.state_dict()[key]
        assert other.isfinite().all() and other.shape == weight.shape, key
        torch.testing.assert_close(other.mean(), weight.mean(), atol=1.0, rtol=0)
        assert (other.std() > 0) == (weight.std() > 0), key


@every_system
def test_all_weights_are_saved_and_none_is_missing_or_left_over(name, tmp_path):
    model = tiny_system(name, torch.float32)
    model.save_pretrained(tmp_path)
    _, told = IncrementalEncoderForEndingGeneration.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(told.values())
    torch.save(model.state_dict(), tmp_path / "weights.pt")
    other = tiny_system(name, torch.float32, seed=1)
    other.load_state_dict(torch.load(tmp_path / "weights.pt"), strict=True)
    batch = batch_for(name, 0)
    assert torch.equal(other(**batch).logits, model(**batch).logits)


def test_other_shapes_are_refused_or_made_anew_as_asked(tmp_path):
    tiny_model(torch.float32).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="You set `ignore_mismatched_sizes` to `False`"):
        IncrementalEncoderForEndingGeneration.from_pretrained(tmp_path, vocab_size=40)
    model = IncrementalEncoderForEndingGeneration.from_pretrained(
        tmp_path, vocab_size=40, ignore_mismatched_sizes=True
    )
    assert model.get_input_embeddings().num_embeddings == model.lm_head.out_features == 40
    assert all(weight.isfinite().all() for weight in model.parameters())


@every_system
def test_embeddings_are_given_set_and_resized(name):
    model = tiny_system(name)
    size = model.config.vocab_size
    assert model.get_output_embeddings() is model.lm_head
    other = torch.nn.Embedding(size, model.config.embedding_size, dtype=torch.float64)
    model.set_input_embeddings(other)
    assert model.get_input_embeddings() is other
    for num_words in (size + 10, size):
        model.resize_token_embeddings(num_words)
        assert model.config.vocab_size == model.get_input_embeddings().num_embeddings == num_words
        assert model.get_output_embeddings().weight.shape[0] == num_words == len(model.lm_head.bias)
        # Without slots, which stand behind the last word.
        batch = {**context_of(batch_for(name, 0)), "labels": torch.tensor([[5, END]] * NUM_STORIES)}
        batch.pop("copy_ids", None)
        assert model(**batch).loss.isfinite()
    padded = model.resize_token_embeddings(pad_to_multiple_of=16)
    assert padded.num_embeddings % 16 == 0


@every_system
def test_parts_and_signatures_are_those_of_any_encoder_and_decoder(name):
    model = tiny_system(name)
    assert model.get_encoder() is model.encoder and isinstance(model, GenerationMixin) and model.can_generate()
    names = list(inspect.signature(model.forward).parameters)
    assert names[:2] == ["input_ids", "attention_mask"] == [model.main_input_name, "attention_mask"]
    assert {"decoder_input_ids", "decoder_attention_mask", "labels", "encoder_outputs", "past_key_values"} < {*names}
    copied = copy.deepcopy(model)
    assert torch.equal(copied(**batch_for(name, 0)).loss, model(**batch_for(name, 0)).loss)


# Forward pass.


@every_system
def test_outputs_by_name_and_by_place_are_the_same(name):
    model, batch = tiny_system(name), batch_for(name, 1)
    asked = {"output_hidden_states": True, "output_attentions": True, "use_cache": False}
    named, placed = model(**batch, **asked), model(**batch, **asked, return_dict=False)
    assert len(placed) == len(named.to_tuple())
    for one, other in zip(named.to_tuple(), placed, strict=True):
        left, right = (value if isinstance(value, tuple) else (value,) for value in (one, other))
        assert all(torch.equal(a, b) for a, b in zip(left, right, strict=True))
    model.config.output_hidden_states = model.config.output_attentions = True
    assert model(**batch, use_cache=False).to_tuple()[0].equal(placed[0])
    assert len(model(**batch, use_cache=False).to_tuple()) == len(placed)


@every_system
def test_twice_is_the_same_and_nothing_given_is_changed(name):
    model, batch = tiny_system(name), batch_for(name, 2)
    before = {key: tensor.clone() for key, tensor in batch.items()}
    assert torch.equal(model(**batch).logits, model(**batch).logits)
    model.generate(**context_of(batch), num_beams=2)
    torch.testing.assert_close(batch, before, rtol=0, atol=0, equal_nan=True)


@every_system
@pytest.mark.parametrize("implementation", ["eager", "fused"])
def test_hidden_states_that_are_returned_have_gradients(name, implementation):
    """Word vectors and the top layer; all other states are copies, made for the caller only."""
    model, batch = tiny_system(name, recurrence_implementation=implementation), batch_for(name, 1)
    output = model(**batch, output_hidden_states=True)
    word_vectors, *_, top = output.decoder_hidden_states
    states = [word_vectors, top, output.encoder_last_hidden_state]
    for state in states:
        state.retain_grad()
    output.loss.backward()
    assert all(state.grad is not None and state.grad.abs().sum() > 0 for state in states)


@pytest.mark.slow
def test_compiled_training_has_the_same_gradients():
    name = "ie-copy-tails"
    model, batch = tiny_system(name, torch.float32).train(), batch_for(name, 1)
    batch = {key: tensor.float() if tensor.is_floating_point() else tensor for key, tensor in batch.items()}
    torch.compiler.reset()
    torch.compile(model, backend="aot_eager")(**batch).loss.backward()
    compiled = {key: weight.grad.clone() for key, weight in model.named_parameters()}
    model.zero_grad()
    model(**batch).loss.backward()
    for key, weight in model.named_parameters():
        torch.testing.assert_close(compiled[key], weight.grad, rtol=1e-3, atol=1e-5, msg=key)


def test_arguments_of_other_models_may_be_none():
    """PEFT hands them on by name, for the task `SEQ_2_SEQ_LM`."""
    model, batch = tiny_model(), as_tensors(random_stories(1))
    expected = model(**batch).loss
    assert torch.equal(model(**batch, inputs_embeds=None, decoder_inputs_embeds=None).loss, expected)
    with pytest.raises(TypeError, match="unexpected keyword argument 'inputs_embeds'"):
        model(**batch, inputs_embeds=torch.zeros(1))


# Generation.

GENERATING = {
    "greedy": ({}, 1, 1),
    "sample": ({"do_sample": True, "num_return_sequences": 2}, 2, 2),
    "beam": ({"num_beams": 3, "num_return_sequences": 2}, 2, 3),
    "beam sample": ({"num_beams": 3, "do_sample": True, "num_return_sequences": 2}, 2, 3),
}


@every_system
@pytest.mark.parametrize("mode", GENERATING)
@pytest.mark.parametrize("use_cache", [True, False])
def test_everything_that_generation_can_return_has_its_shape(name, mode, use_cache):
    settings, num_endings, num_rows = GENERATING[mode]
    model, batch = tiny_system(name), context_of(batch_for(name, 3))
    torch.manual_seed(0)
    output = model.generate(
        **batch, **settings, max_new_tokens=NUM_STEPS, min_new_tokens=NUM_STEPS, use_cache=use_cache,
        return_dict_in_generate=True, output_scores=True, output_logits=True, output_attentions=True,
        output_hidden_states=True,
    )  # fmt: skip
    rows, width = NUM_STORIES * num_rows, model.config.num_output_words
    assert isinstance(output, GenerateBeamEncoderDecoderOutput if "beam" in mode else GenerateEncoderDecoderOutput)
    assert output.sequences.shape == (NUM_STORIES * num_endings, 1 + NUM_STEPS)
    assert (output.sequences[:, 0] == START).all()
    assert len(output.scores) == len(output.logits) == NUM_STEPS
    assert all(step.shape == (rows, width) for step in (*output.scores, *output.logits))
    assert output.encoder_hidden_states[0].shape[0] in (NUM_STORIES, rows)
    assert len(output.decoder_hidden_states) == len(output.cross_attentions) == NUM_STEPS
    for step, (states, attentions) in enumerate(
        zip(output.decoder_hidden_states, output.cross_attentions, strict=True)
    ):
        num_read = 1 if use_cache else step + 1
        assert len(states) == 1 + model.config.num_layers
        assert all(state.shape[:2] == (rows, num_read) for state in states)
        assert all(attention.shape[:2] == (rows, num_read) for attention in attentions)
    if "beam" in mode:
        assert output.sequences_scores.shape == (NUM_STORIES * num_endings,)
        assert output.beam_indices.shape == (NUM_STORIES * num_endings, NUM_STEPS)
    if use_cache:
        assert isinstance(output.past_key_values, RecurrentCache)
        assert output.past_key_values.get_seq_length() == NUM_STEPS
        assert output.past_key_values.hidden.shape[:2] == (rows, model.config.num_layers)


@every_system
def test_cases_at_the_edge_of_length(name):
    model, batch = tiny_system(name), context_of(batch_for(name, 4))
    assert model.generate(**batch, max_new_tokens=1).shape == (NUM_STORIES, 2)
    assert model.generate(**batch, max_length=2).shape == (NUM_STORIES, 2)
    prompt = torch.tensor([[START, 5, 6]] * NUM_STORIES)
    assert model.generate(**batch, decoder_input_ids=prompt, max_new_tokens=1).shape == (NUM_STORIES, 4)
    assert (model.generate(**batch, eos_token_id=[5, END], max_new_tokens=9)[:, -1] != START).all()
    model.generation_config.max_new_tokens = 2
    assert model.generate(**batch).shape[1] <= 3


@pytest.mark.parametrize("num_beams", [1, 3])
def test_rows_that_have_ended_are_padded_with_what_was_asked_for(num_beams):
    model, batch = tiny_model(), context_of(as_tensors(random_stories(1)))
    for pad in (PADDING, 9):
        ids = model.generate(**batch, pad_token_id=pad, num_beams=num_beams, max_new_tokens=20)
        for row in ids.tolist():
            if END in row:
                assert set(row[row.index(END) + 1 :]) <= {pad}


def test_settings_of_the_caller_stay_as_they_were():
    model, batch = tiny_model(), context_of(as_tensors(random_stories(1)))
    config = GenerationConfig(max_length=4, num_beams=2, stop_strings=None, decoder_start_token_id=START)
    given, own = config.to_dict(), model.generation_config.to_dict()
    model.generate(**batch, generation_config=config)
    assert config.to_dict() == given and model.generation_config.to_dict() == own


@pytest.mark.parametrize("implementation", ["static", "dynamic", "quantized", "offloaded"])
def test_caches_of_attention_layers_are_not_used(implementation, caplog):
    """There is nothing that would grow: transformers says that it ignores the setting."""
    model, batch = tiny_model(), context_of(as_tensors(random_stories(1)))
    output = model.generate(**batch, cache_implementation=implementation, return_dict_in_generate=True)
    assert isinstance(output.past_key_values, RecurrentCache)
    assert torch.equal(output.sequences, model.generate(**batch))


@every_system
def test_arguments_for_the_model_are_checked_by_name(name):
    model, batch = tiny_system(name), context_of(batch_for(name, 4))
    with pytest.raises(ValueError, match="not_an_argument"):
        model.generate(**batch, not_an_argument=1)
    story = {key: tensor for key, tensor in batch.items() if key != "input_ids"}
    assert story.keys() <= model.prepare_inputs_for_generation(torch.tensor([[START]]), **story).keys()
