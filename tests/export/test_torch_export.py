"""`torch.export` and `torch.compile(fullgraph=True)`: forward passes and decoder steps, with their cache."""

import pytest
import torch
from small_model import small_model
from torch._dynamo.testing import CompileCounterWithBackend

from hf_storyend.systems import SYSTEMS

STORIES = [
    "Anna put a cake in the oven. Then Anna and Zork watched a film.",
    "Tom opened the window. They burn cakes.",
]
FAST = {"ie-copy-tails"}
systems = pytest.mark.parametrize(
    "system", [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in SYSTEMS]
)


def step_inputs(model, tokenizer):
    """A story that was encoded, the state after the start symbol, and the next word."""
    encoded = model.encoder(**tokenizer(STORIES, return_tensors="pt"))
    start = torch.full((2, 1), model.config.decoder_start_token_id)
    cache = model(encoder_outputs=encoded, decoder_input_ids=start).past_key_values
    return {"encoder_outputs": encoded, "decoder_input_ids": torch.tensor([[5], [6]]), "past_key_values": cache}


@systems
@torch.no_grad()
def test_a_step_is_exported_with_its_cache(system, tokenizer):
    model = small_model(system, tokenizer)
    exported = torch.export.export(model, (), step_inputs(model, tokenizer)).module()
    ours, theirs = step_inputs(model, tokenizer), step_inputs(model, tokenizer)
    for word in (7, 8, 9):
        expected, output = model(**ours), exported(**theirs)
        torch.testing.assert_close(output.logits, expected.logits)
        for inputs, result in ((ours, expected), (theirs, output)):
            inputs.update(past_key_values=result.past_key_values, decoder_input_ids=torch.full((2, 1), word))
    assert output.past_key_values.get_seq_length() == expected.past_key_values.get_seq_length() == 4
    torch.testing.assert_close(output.past_key_values.hidden, expected.past_key_values.hidden)


@pytest.mark.slow
@pytest.mark.parametrize("system", SYSTEMS)
@torch.no_grad()
def test_the_forward_pass_is_exported(system, tokenizer):
    model = small_model(system, tokenizer)
    inputs = {**tokenizer(STORIES, return_tensors="pt"), "decoder_input_ids": torch.tensor([[2, 5], [2, 6]])}
    output, expected = torch.export.export(model, (), inputs).module()(**inputs), model(**inputs)
    torch.testing.assert_close(output.logits, expected.logits)
    torch.testing.assert_close(output.past_key_values.cell, expected.past_key_values.cell)


@systems
@torch.no_grad()
def test_a_step_compiles_as_one_graph_for_all_words(system, tokenizer):
    model = small_model(system, tokenizer)
    torch.compiler.reset()
    counted = CompileCounterWithBackend("eager")
    compiled = torch.compile(model, backend=counted, fullgraph=True)
    ours, theirs = step_inputs(model, tokenizer), step_inputs(model, tokenizer)
    for word in (7, 8, 9):
        expected, output = model(**ours), compiled(**theirs)
        torch.testing.assert_close(output.logits, expected.logits)
        for inputs, result in ((ours, expected), (theirs, output)):
            inputs.update(past_key_values=result.past_key_values, decoder_input_ids=torch.full((2, 1), word))
    assert counted.frame_count == 1


@pytest.mark.slow
@pytest.mark.parametrize("system", SYSTEMS)
@torch.no_grad()
def test_the_forward_pass_compiles_as_one_graph_with_its_cache(system, tokenizer):
    model = small_model(system, tokenizer)
    inputs = {**tokenizer(STORIES, return_tensors="pt"), "decoder_input_ids": torch.tensor([[2, 5], [2, 6]])}
    torch.compiler.reset()
    output, expected = torch.compile(model, backend="aot_eager", fullgraph=True)(**inputs), model(**inputs)
    torch.testing.assert_close(output.logits, expected.logits)
    torch.testing.assert_close(output.past_key_values.hidden, expected.past_key_values.hidden)
    assert output.past_key_values.get_seq_length() == 2
