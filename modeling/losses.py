"""Negative log likelihoods over real words only."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from .cpu_products import product
from .drawn_words import DrawnWords, drawn_losses
from .plain_modules import is_plain
from .tensor_values import has_values, precise

IGNORED = -100
# Rows whose logits are held at a time.
_CHUNK = 512


def sum_of_losses(
    states: torch.Tensor,
    targets: torch.Tensor,
    lm_head: nn.Module,
    dropout: nn.Module | None = None,
    drawn: DrawnWords | None = None,
) -> torch.Tensor:
    """
    Sum of -log P(target) over the targets that are not ignored: states [..., D], targets [...]. Only states with a
    target reach `dropout` and `lm_head`, unless the data may not be looked at. Where words were drawn, P is the
    target's share among them.
    """
    states, targets = states.flatten(0, -2), targets.flatten()
    can_choose = has_values(targets)
    if can_choose:
        real = (targets != IGNORED).nonzero().squeeze(-1)
        states, targets = states.index_select(0, real), targets.index_select(0, real)
    states = states if dropout is None else dropout(states)
    if drawn is not None:
        sampled = drawn_losses(states, targets.clamp(min=0), lm_head, drawn)
        return sampled.masked_fill(targets == IGNORED, 0.0).sum()
    dtype = _dtype_of_product(states)
    # Probabilities are too small for float16 before they have been multiplied by the scale of the loss.
    if can_choose and is_plain(lm_head, nn.Linear) and dtype != torch.float16:
        tensors = [tensor.to(dtype) for tensor in (states, lm_head.weight, lm_head.bias)]
        return ProjectedCrossEntropy.apply(*tensors, targets, torch.is_grad_enabled())
    return sum_of_cross_entropies(lm_head(states), targets)


def sum_of_cross_entropies(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """The same sum from logits [..., V] that are there already."""
    return functional.cross_entropy(
        precise(logits.flatten(0, -2)), targets.flatten(), ignore_index=IGNORED, reduction="sum"
    )


def _dtype_of_product(states: torch.Tensor) -> torch.dtype:
    """What calling the projection would compute in."""
    device = states.device.type
    if torch.is_autocast_enabled(device) and states.dtype != torch.float64:
        return torch.get_autocast_dtype(device)
    return states.dtype


class ProjectedCrossEntropy(torch.autograd.Function):
    """
    Vocabulary projection and cross entropy in one: states [N, D], weight [V, D], bias [V], targets [N] -> the sum.

    The logits of all words of a batch would be the largest tensor of a training step. Here those of some rows at a
    time are made, turned into a loss and into gradients, and forgotten, so that backward has only to scale.
    """

    @staticmethod
    def forward(
        ctx: Any,
        states: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor,
        targets: torch.Tensor,
        has_backward: bool,
    ) -> torch.Tensor:
        inputs = (states, weight, bias)
        needed = [has_backward and need for need in ctx.needs_input_grad[:3]]
        dtype = precise(states[:0]).dtype
        # Sums over all chunks, and what backward scales: not in half precision.
        gradients = [
            torch.zeros_like(tensor, dtype=dtype) if need else None
            for tensor, need in zip(inputs, needed, strict=True)
        ]
        total = torch.zeros((), dtype=dtype, device=states.device)
        for start in range(0, states.shape[0], _CHUNK):
            total += _loss_of_rows(slice(start, start + _CHUNK), inputs, targets, gradients)
        ctx.dtype = states.dtype
        ctx.save_for_backward(*gradients)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        scaled = [None if saved is None else (saved * gradient).to(ctx.dtype) for saved in ctx.saved_tensors]
        return *scaled, None, None


def _loss_of_rows(
    rows: slice, inputs: tuple[torch.Tensor, ...], targets: torch.Tensor, gradients: list[torch.Tensor | None]
) -> torch.Tensor:
    """Sum of the losses of some rows; their gradients are added to those of all. One tensor is as large as logits."""
    (states, weight, bias), targets = inputs, targets[rows, None]
    logits = precise(product(states[rows], weight, bias))
    largest = logits.amax(dim=1, keepdim=True)
    of_targets = logits.gather(1, targets) - largest
    exponentials = logits.sub_(largest).exp_()
    sums = exponentials.sum(dim=1, keepdim=True)
    if any(gradient is not None for gradient in gradients):
        # The gradient of the logits: the probabilities, less one at the target.
        by_logits = exponentials.div_(sums).scatter_add_(1, targets, torch.full_like(sums, -1.0))
        _add_gradients(by_logits.to(states.dtype), states[rows], weight, rows, gradients)
    return (sums.log() - of_targets).sum()


def _add_gradients(
    by_logits: torch.Tensor,
    states: torch.Tensor,
    weight: torch.Tensor,
    rows: slice,
    gradients: list[torch.Tensor | None],
) -> None:
    of_states, of_weight, of_bias = gradients
    if of_states is not None:
        of_states[rows] = product(by_logits, weight.T)
    if of_bias is not None:
        of_bias += by_logits.sum(dim=0)
    if of_weight is None:
        return
    if of_weight.dtype == states.dtype:
        of_weight.addmm_(by_logits.T, states)
    else:
        of_weight += by_logits.T @ states


def next_word_targets(word_ids: torch.Tensor, word_mask: torch.Tensor, end_id: int) -> torch.Tensor:
    """
    What each step of the encoder should predict, [B, K, L + 1]: step j has read the start symbol and j words and
    predicts word j + 1, the last one the end symbol. The first sentence of a story is not supervised.
    """
    num_words = word_mask.sum(dim=-1, keepdim=True)
    steps = torch.arange(word_ids.shape[-1] + 1, device=word_ids.device)
    targets = functional.pad(word_ids.masked_fill(~word_mask, IGNORED), (0, 1), value=IGNORED)
    targets = targets.masked_fill(steps == num_words, end_id)
    sentence_is_real = num_words.squeeze(-1) > 0
    supervised = sentence_is_real & (sentence_is_real.cumsum(dim=1) > 1)
    return targets.masked_fill(~supervised.unsqueeze(-1), IGNORED)


def drawn_targets(targets: torch.Tensor, share: float) -> torch.Tensor:
    """Targets of which each is kept with the probability `share`; the others are ignored."""
    if share == 1.0:
        return targets
    return targets.masked_fill(torch.rand(targets.shape, device=targets.device) >= share, IGNORED)


def labelled_steps(labels: torch.Tensor) -> torch.Tensor:
    """[B, T], true up to the last label of each row: what the decoder has to read for the loss."""
    return (labels != IGNORED).flip(1).cumsum(dim=1).flip(1) > 0
