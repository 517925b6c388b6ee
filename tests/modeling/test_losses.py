"""The loss made in chunks, without logits, against the projection and cross entropy that it stands for."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from story_cases import as_tensors, context_of, random_stories, tiny_model
from torch import nn
from torch.nn import functional

from hf_storyend.modeling import losses
from hf_storyend.modeling.losses import IGNORED, labelled_steps, sum_of_cross_entropies, sum_of_losses

NUM_WORDS, SIZE = 11, 5


def make_case(num_rows: int, seed: int = 0, dtype: torch.dtype = torch.float64):
    generator = torch.Generator().manual_seed(seed)
    states = torch.randn(num_rows, SIZE, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()
    targets = torch.randint(NUM_WORDS, (num_rows,), generator=generator)
    targets[torch.rand(num_rows, generator=generator) < 0.3] = IGNORED
    torch.manual_seed(seed)
    return states, targets, nn.Linear(SIZE, NUM_WORDS, dtype=torch.float64).to(dtype)


def plain_sum(states, targets, lm_head):
    return functional.cross_entropy(lm_head(states), targets, ignore_index=IGNORED, reduction="sum")


def gradients(loss, states, lm_head):
    return torch.autograd.grad(loss, [states, lm_head.weight, lm_head.bias])


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    num_rows=st.integers(0, 20), seed=st.integers(0, 10**6), chunk=st.integers(1, 8), scale=st.sampled_from([1.0, 3.0])
)
def test_same_as_projection_and_cross_entropy(num_rows, seed, chunk, scale):
    """Also where the loss is scaled, as by gradient accumulation, and where no row has a target."""
    states, targets, lm_head = make_case(num_rows, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(losses, "_CHUNK", chunk)
        actual = scale * sum_of_losses(states, targets, lm_head)
    expected = scale * plain_sum(states, targets, lm_head)
    torch.testing.assert_close(actual, expected)
    for one, other in zip(gradients(actual, states, lm_head), gradients(expected, states, lm_head), strict=True):
        torch.testing.assert_close(one, other)


def test_each_part_honours_its_own_gradient():
    first, second = make_case(9, seed=1), make_case(7, seed=2)
    lm_head = first[2]

    def total(loss):
        return 3.0 * loss(*first[:2], lm_head) - 0.5 * loss(*second[:2], lm_head)

    leaves = [first[0], second[0], lm_head.weight, lm_head.bias]
    actual, expected = (torch.autograd.grad(total(loss), leaves) for loss in (sum_of_losses, plain_sum))
    torch.testing.assert_close(actual, expected)


def test_gradients_can_be_made_twice():
    states, targets, lm_head = make_case(9)
    loss = sum_of_losses(states, targets, lm_head)
    first = torch.autograd.grad(loss, [states, lm_head.weight], retain_graph=True)
    torch.testing.assert_close(torch.autograd.grad(loss, [states, lm_head.weight]), first, rtol=0, atol=0)


@pytest.mark.parametrize("frozen", ["states", "lm_head", "bias"])
def test_what_is_frozen_gets_no_gradient(frozen):
    states, targets, lm_head = make_case(9)
    leaves = {"states": states, "weight": lm_head.weight, "bias": lm_head.bias}
    for name in {"states": ["states"], "lm_head": ["weight", "bias"], "bias": ["bias"]}[frozen]:
        leaves.pop(name).requires_grad_(False)
    actual, expected = (
        torch.autograd.grad(loss(states, targets, lm_head), list(leaves.values()))
        for loss in (sum_of_losses, plain_sum)
    )
    torch.testing.assert_close(actual, expected)


def test_scores_that_would_overflow():
    states, targets, lm_head = make_case(9)
    large = (states * 1e4).detach().requires_grad_()
    loss = sum_of_losses(large, targets, lm_head)
    torch.testing.assert_close(loss, plain_sum(large, targets, lm_head))
    assert all(gradient.isfinite().all() for gradient in gradients(loss, large, lm_head))


def test_without_gradients_none_are_made(monkeypatch):
    states, targets, lm_head = make_case(9)
    monkeypatch.setattr(losses, "_add_gradients", lambda *_: pytest.fail("nobody needs these"))
    with torch.no_grad():
        loss = sum_of_losses(states, targets, lm_head)
    torch.testing.assert_close(loss, plain_sum(states, targets, lm_head).detach())


@pytest.mark.parametrize("dtype, tolerance", [(torch.bfloat16, 0.05), (torch.float16, 0.01)])
def test_half_precision_is_summed_in_float32(dtype, tolerance):
    states, targets, lm_head = make_case(20, dtype=dtype)
    loss = sum_of_losses(states, targets, lm_head)
    assert loss.dtype == torch.float32
    exact = make_case(20)
    torch.testing.assert_close(loss.double(), plain_sum(*exact), rtol=tolerance, atol=tolerance)
    for one, other in zip(
        gradients(loss, states, lm_head), gradients(plain_sum(*exact), exact[0], exact[2]), strict=True
    ):
        assert one.dtype == dtype
        torch.testing.assert_close(one.double(), other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype, scale", [(torch.bfloat16, 2.0**17), (torch.float16, 2.0**10)])
def test_a_large_scale_of_the_loss_under_autocast(dtype, scale):
    """As a gradient scaler gives it; in float16 it saves what would else be too small a number."""
    states, targets, lm_head = make_case(20, dtype=torch.float32)
    with torch.autocast("cpu", dtype=dtype):
        loss = sum_of_losses(states, targets, lm_head)
    assert loss.dtype == torch.float32
    expected = gradients(plain_sum(states, targets, lm_head), states, lm_head)
    for one, other in zip(gradients(scale * loss, states, lm_head), expected, strict=True):
        assert one.dtype == torch.float32
        torch.testing.assert_close(one / scale, other, rtol=0.05, atol=0.05)


def test_an_adapter_on_the_projection_has_its_say():
    states, targets, lm_head = make_case(9)
    lm_head.register_forward_hook(lambda module, inputs, output: output * 2)
    torch.testing.assert_close(sum_of_losses(states, targets, lm_head), plain_sum(states, targets, lm_head))


def test_dropout_is_before_the_projection():
    states, targets, lm_head = make_case(9)
    nothing = sum_of_losses(states, targets, lm_head, nn.Dropout(1.0))
    torch.testing.assert_close(nothing, plain_sum(torch.zeros_like(states), targets, lm_head))


def test_logits_that_are_there_already():
    states, targets, lm_head = make_case(9)
    torch.testing.assert_close(
        sum_of_cross_entropies(lm_head(states).view(3, 3, -1), targets.view(3, 3)), plain_sum(states, targets, lm_head)
    )


def test_steps_up_to_the_last_label():
    labels = torch.tensor([[5, 6, IGNORED], [IGNORED, 7, IGNORED], [IGNORED] * 3, [5, IGNORED, 7]])
    assert labelled_steps(labels).int().tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 0], [1, 1, 1]]


@pytest.mark.parametrize("is_training", [True, False])
def test_a_label_that_is_ignored_in_between_is_still_read(is_training):
    """Its word is not predicted, and what comes behind it is, from the same states as ever."""
    model, batch = tiny_model().train(is_training), as_tensors(random_stories(3, num_stories=2, max_ending=4))
    labels = batch["labels"]
    inputs = model.prepare_decoder_input_ids_from_labels(labels)
    labels[:, 0] = IGNORED
    logits = model(**context_of(batch), decoder_input_ids=inputs).logits
    expected = sum_of_cross_entropies(logits, labels) / (labels != IGNORED).sum().clamp(min=1)
    actual = model(**batch, decoder_input_ids=inputs).ending_loss
    torch.testing.assert_close(actual, expected)


def test_in_evaluation_given_inputs_are_read_to_their_end():
    model, batch = tiny_model(), as_tensors(random_stories(3))
    inputs = torch.full((3, 4), 6)
    labels = torch.full((3, 4), IGNORED)
    labels[:, 0] = 7
    with_labels = model(**context_of(batch), decoder_input_ids=inputs, labels=labels).logits
    torch.testing.assert_close(with_labels, model(**context_of(batch), decoder_input_ids=inputs).logits)
