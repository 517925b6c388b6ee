# Copyright 2026 The hf_storyend authors.
# SPDX-License-Identifier: Apache-2.0
"""Losses: cross entropy over real words only, in chunks, and the authors' sampled softmax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from .tensor_utils import is_eager_mode, is_unmodified, on_host, upcast

IGNORED = -100
# In place of words that are offered beside the vocabulary.
PADDING = -1
# Rows whose logits are held at a time: half the memory of a training step, at no cost in time.
_CHUNK = 512


def projected_cross_entropy(
    states: torch.Tensor,
    targets: torch.Tensor,
    lm_head: nn.Module,
    dropout: nn.Module | None = None,
    softmax: SampledSoftmax | None = None,
    host_targets: torch.Tensor | None = None,
) -> torch.Tensor:
    """
    Sum of -log P(target) over the targets that are not ignored: states [..., D], targets [...], also those of the host
    if it knows them. Only states with a target reach `dropout` and `lm_head`, unless the graph is traced. With sampled
    classes, P is the target's share among them.
    """
    states, targets = states.flatten(0, -2), targets.flatten()
    is_eager = is_eager_mode(targets)
    if is_eager:
        real = real_positions(targets if host_targets is None else host_targets, targets.device)
        states, targets = states.index_select(0, real), targets.index_select(0, real)
    states = states if dropout is None else dropout(states)
    if softmax is not None:
        return softmax.losses(states, targets.clamp(min=0), lm_head).masked_fill(targets == IGNORED, 0.0).sum()
    dtype = _dtype_of_product(states)
    # Probabilities are too small for float16 before they have been multiplied by the scale of the loss.
    if is_eager and is_unmodified(lm_head, nn.Linear) and dtype != torch.float16:
        tensors = [tensor.to(dtype) for tensor in (states, lm_head.weight, lm_head.bias)]
        return ProjectedCrossEntropy.apply(*tensors, targets, torch.is_grad_enabled())
    return cross_entropy_sum(lm_head(states), targets)


def real_positions(targets: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Where targets, taken as one row, are not ignored."""
    (targets,) = on_host(targets)
    return (targets.flatten() != IGNORED).nonzero().squeeze(1).to(device)


def cross_entropy_sum(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """The same sum from logits [..., V] that are there already."""
    return functional.cross_entropy(
        upcast(logits.flatten(0, -2)), targets.flatten(), ignore_index=IGNORED, reduction="sum"
    )


def add_to_every_word(logits: torch.Tensor, loss: torch.Tensor, column: int) -> torch.Tensor:
    """
    Logits [B, T, C] under which -log p of every word but that of `column` is higher by exactly `loss`: whatever loss a
    caller takes from them, it has this one in it, with its gradient. `column`, never a label, takes the probability.
    """
    logits = upcast(logits)
    # log(e^loss - 1), which must neither overflow nor be that of 0.
    loss = loss.clamp(min=1e-6)
    rest = logits.logsumexp(dim=-1, keepdim=True) + loss + (-torch.expm1(-loss)).log()
    taken = torch.logaddexp(logits[..., column, None], rest)
    return torch.cat((logits[..., :column], taken, logits[..., column + 1 :]), dim=-1)


def _dtype_of_product(states: torch.Tensor) -> torch.dtype:
    """The dtype that calling the projection would compute in."""
    device = states.device.type
    if torch.is_autocast_enabled(device) and states.dtype != torch.float64:
        return torch.get_autocast_dtype(device)
    return states.dtype


class ProjectedCrossEntropy(torch.autograd.Function):
    """
    Vocabulary projection and cross entropy in one: states [N, D], weight [V, D], bias [V], targets [N] -> the sum.

    The logits of all words of a batch would be the largest tensor of a training step. Here they are
    made for a chunk of rows, turned into loss and gradients, and dropped; backward only scales.
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
        dtype = upcast(states[:0]).dtype
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
    logits = upcast(torch.addmm(bias, states[rows], weight.T))
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
        of_states[rows] = by_logits @ weight
    if of_bias is not None:
        of_bias += by_logits.sum(dim=0)
    if of_weight is None:
        return
    if of_weight.dtype == states.dtype:
        of_weight.addmm_(by_logits.T, states)
    else:
        of_weight += by_logits.T @ states


class SampledSoftmax(NamedTuple):
    """
    The authors' training loss: a softmax over the target and some hundred classes sampled for the batch.

    Classes are sampled without replacement from a log-uniform distribution over ids, which are sorted by falling
    frequency. Logits are corrected by the log expected count (Jean et al., 2015), so that the distribution over all
    words is still what is best to be learnt. Rare words are seldom sampled: most is learnt about the frequent ones.
    """

    ids: torch.Tensor  # [M], the sampled classes
    log_expected_counts: torch.Tensor  # [V]

    @classmethod
    @torch.compiler.disable
    def sample(cls, num_words: int, num_classes: int, device: torch.device) -> SampledSoftmax:
        """By the generator of the CPU, wherever the model is."""
        ids, num_tries = sample_unique(num_words, num_classes, lambda size: torch.rand(size, dtype=torch.float64))
        log_misses = torch.log1p(-log_uniform_probabilities(num_words))
        return cls(ids.to(device), expected_counts(log_misses, num_tries).log().float().to(device))

    def contains(self, words: torch.Tensor) -> torch.Tensor:
        """Which of these words, of any shape, were sampled."""
        return torch.zeros_like(self.log_expected_counts, dtype=torch.bool).index_fill(0, self.ids, True)[words]

    def logits(self, states: torch.Tensor, targets: torch.Tensor, lm_head: nn.Module) -> tuple[torch.Tensor, ...]:
        """Corrected logits of the targets [N, 1] and of the sampled classes [N, M], lowest where one is the target."""
        targets = targets.unsqueeze(1)
        if is_unmodified(lm_head, nn.Linear):
            weight, bias = lm_head.weight, lm_head.bias
            of_targets = (states * weight[targets.squeeze(1)]).sum(dim=1, keepdim=True) + bias[targets]
            of_sampled = functional.linear(states, weight[self.ids], bias[self.ids])
        else:
            logits = lm_head(states)
            of_targets, of_sampled = logits.gather(1, targets), logits[:, self.ids]
        of_sampled = upcast(of_sampled) - self.log_expected_counts[self.ids]
        of_sampled = of_sampled.masked_fill(self.ids == targets, torch.finfo(of_sampled.dtype).min)
        return upcast(of_targets) - self.log_expected_counts[targets], of_sampled

    def losses(self, states: torch.Tensor, targets: torch.Tensor, lm_head: nn.Module) -> torch.Tensor:
        """-log of each target's share [N] among itself and the sampled classes, from states [N, D], targets [N]."""
        of_targets, of_sampled = self.logits(states, targets, lm_head)
        return torch.cat((of_targets, of_sampled), dim=1).logsumexp(dim=1) - of_targets.squeeze(1)


def log_uniform_probabilities(num_words: int) -> torch.Tensor:
    """[V]: P(id) = log((id + 2) / (id + 1)) / log(V + 1), close to Zipf's law; in double precision."""
    ids = torch.arange(num_words, dtype=torch.float64)
    return torch.log1p(1 / (ids + 1)) / torch.log(torch.tensor(num_words + 1, dtype=torch.float64))


def sample_unique(
    num_words: int, num_samples: int, uniform: Callable[[int], torch.Tensor]
) -> tuple[torch.Tensor, int]:
    """
    The first `num_samples` distinct ids of a log-uniform sequence, and the length of that sequence. `uniform` gives as
    many numbers from 0 to 1 as it is asked for, in double precision.
    """
    sampled = torch.empty(0, dtype=torch.int64)
    log_range = torch.log(torch.tensor(num_words + 1, dtype=torch.float64))
    while True:
        new = (uniform(8 * num_samples) * log_range).exp().floor().long() - 1
        sampled = torch.cat((sampled, new.clamp(max=num_words - 1)))
        ids, groups = sampled.unique(return_inverse=True)
        first_seen = torch.full_like(ids, len(sampled)).scatter_reduce(0, groups, torch.arange(len(sampled)), "amin")
        if len(ids) >= num_samples:
            kept = first_seen.sort().values[:num_samples]
            return sampled[kept], int(kept[-1]) + 1


def expected_counts(log_misses: torch.Tensor, num_tries: torch.Tensor | int) -> torch.Tensor:
    """Expected count of each word in so many tries, from the log probability that one try misses it."""
    return -torch.expm1(num_tries * log_misses)


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


def subsample_targets(targets: torch.Tensor, ratio: float) -> torch.Tensor:
    """Keep each target with the probability `ratio`; ignore the others."""
    if ratio == 1.0:
        return targets
    return targets.masked_fill(torch.rand(targets.shape, device=targets.device) >= ratio, IGNORED)


def labelled_steps(labels: torch.Tensor) -> torch.Tensor:
    """[B, T], true up to the last label of each row: the steps that the loss needs."""
    return (labels != IGNORED).flip(1).cumsum(dim=1).flip(1) > 0
