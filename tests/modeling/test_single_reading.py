"""Reading one story without gradients against the plain loop, and when that way is taken."""

from __future__ import annotations

from unittest.mock import Mock

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reading_cases import EXACT, make_case
from story_cases import as_tensors, context_of, random_stories, tiny_model

from hf_storyend.modeling import story_reader
from hf_storyend.modeling.single_reading import can_read_single, read_single
from hf_storyend.modeling.stepwise_reading import read_step_by_step


@st.composite
def single_cases(draw):
    num_steps = draw(st.integers(1, 6))
    lengths = draw(st.none() | st.tuples(st.integers(0, num_steps)))
    of_memory = st.tuples(st.integers(0, 4))
    return make_case(
        seed=draw(st.integers(0, 10**6)),
        lengths=lengths,
        num_steps=num_steps,
        num_layers=draw(st.integers(1, 3)),
        # Without lengths the memory says how many rows there are.
        memory_lengths=draw(of_memory if lengths is None else st.none() | of_memory),
        num_sources=draw(st.sampled_from([1, 2])),
    )


@settings(max_examples=150, deadline=None, derandomize=True)
@given(case=single_cases())
def test_same_as_the_plain_loop(case):
    with torch.no_grad():
        actual, expected = case.read(read_single), case.read(read_step_by_step)
    for part, other in zip(actual, expected, strict=True):
        torch.testing.assert_close(part, other, **EXACT)


@pytest.mark.parametrize("lengths", [(3,), (0,)])
def test_without_attention(lengths):
    case = make_case(lengths=lengths, memory_lengths=None)
    parts = case.encoder.lstm, None, case.word_vectors, case.state, None, case.step_mask
    # As a first sentence: nothing comes through the half for a context.
    with torch.no_grad():
        actual, expected = read_single(*parts), case.read(read_step_by_step)
    torch.testing.assert_close(actual, expected, **EXACT)


def test_when_it_is_taken():
    case = make_case(lengths=(3,), memory_lengths=(2,))
    lstm, attention, vectors = case.encoder.lstm.eval(), case.encoder.attention, case.word_vectors.detach()
    assert not can_read_single(lstm, attention, vectors), "gradients may be wanted"
    with torch.no_grad():
        assert can_read_single(lstm, attention, vectors) and can_read_single(lstm, None, vectors)
        assert not can_read_single(lstm, attention, vectors.expand(2, -1, -1))
        assert not can_read_single(lstm, attention, vectors.to("meta"))
        assert not can_read_single(lstm.train(), attention, vectors)
        with torch.autocast("cpu", torch.bfloat16):
            assert not can_read_single(lstm.eval(), attention, vectors)
        lstm.step_gates[1].register_forward_hook(lambda *_: None)
        assert not can_read_single(lstm, attention, vectors)


def test_one_story_is_read_that_way(monkeypatch):
    model, story = tiny_model(), context_of(as_tensors(random_stories(3, num_stories=1)))
    reader = Mock(side_effect=read_single)
    monkeypatch.setattr(story_reader, "read_single", reader)
    ending = model.generate(**story, max_new_tokens=5)
    num_sentences, num_words = story["input_ids"].shape[1], ending.shape[1] - 1
    assert reader.call_count == num_sentences + num_words
    two = {name: tensor.repeat_interleave(2, dim=0) for name, tensor in story.items()}
    assert model.generate(**two, max_new_tokens=5)[0].equal(ending[0])
    assert reader.call_count == num_sentences + num_words, "two rows are read otherwise"
