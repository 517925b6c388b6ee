"""Inference leaves the model and the random states as they were."""

import random

import numpy as np
import pytest
import torch

from hf_storyend.evaluation.distributed import map_stories
from hf_storyend.evaluation.options import EvaluationOptions
from hf_storyend.evaluation.run import evaluate_model

NO_SAMPLING = EvaluationOptions(batch_size=4, num_seeds=0)


@pytest.mark.parametrize("generation", [{}, {"do_sample": True}])
def test_modes_and_random_states_are_preserved(model, tokenizer, stories, tokenised, generation):
    model.train()
    model.lm_head.eval()
    states = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()
    evaluate_model(
        model, tokenizer, stories, tokenised, options=EvaluationOptions(generation=generation, bootstrap_samples=10)
    )
    assert model.training and model.encoder.training and not model.lm_head.training
    assert torch.equal(states[0], torch.get_rng_state())
    assert (states[1] == np.random.get_state()[1]).all() and states[2] == random.getstate()
    assert all(parameter.grad is None for parameter in model.parameters())


def test_modes_are_restored_after_a_failure(model, tokenizer, tokenised):
    def fail(unwrapped, batch, rows):
        raise KeyError("broken")

    model.train()
    with pytest.raises(KeyError, match="broken"):
        map_stories(fail, model, tokenizer, tokenised, batch_size=2)
    assert model.training


def test_dropout_is_off(model, tokenizer, stories, tokenised):
    before = evaluate_model(model, tokenizer, stories, tokenised, options=NO_SAMPLING).metrics["perplexity"]
    model.dropout.p = 0.9
    model.train()
    after = evaluate_model(model, tokenizer, stories, tokenised, options=NO_SAMPLING).metrics["perplexity"]
    assert before == after


def test_a_wrapped_model_is_unwrapped(model, tokenizer, stories, tokenised):
    plain = evaluate_model(model, tokenizer, stories, tokenised, options=NO_SAMPLING)
    wrapped = evaluate_model(torch.nn.DataParallel(model), tokenizer, stories, tokenised, options=NO_SAMPLING)
    assert plain.endings == wrapped.endings
