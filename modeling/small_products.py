"""
Products of a large weight with a few rows, as in generation and where few rows of a batch are still reading.

They are bound by reading the weight. A library's matrix product then uses one thread and a slow kernel; the same cut
into blocks of the weight takes half of the time or less on a CPU. Up to some hundred rows threads share it badly;
turned round, as weight times rows, it takes two thirds to nine tenths of the time.
"""

from __future__ import annotations

import torch
from torch import nn

from .plain_modules import is_plain_linear
from .tensor_values import has_values

_MAX_ROWS = 128
_MAX_ROWS_IN_BLOCKS = 16
_NUM_BLOCKS = 8
# Below this many numbers the cutting costs more than it brings.
_MIN_WEIGHT = 1 << 18


def is_small_product(inputs: torch.Tensor, weight: torch.Tensor) -> bool:
    """Whether `small_product` is worth it for inputs [n, I] and weight [O, I]."""
    most = _MAX_ROWS_IN_BLOCKS if torch.get_num_threads() == 1 else _MAX_ROWS
    return (
        inputs.shape[0] <= most
        and weight.numel() >= _MIN_WEIGHT
        and weight.device.type == "cpu"
        and weight.dtype == inputs.dtype == torch.float32
        and has_values(inputs)
    )


def small_product(inputs: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """`inputs @ weight.T`: [n, I] and [O, I] -> [n, O], which lies in memory as [O, n]."""
    if inputs.shape[0] > _MAX_ROWS_IN_BLOCKS:
        return torch.mm(weight, inputs.T).T
    num_rest = weight.shape[0] % _NUM_BLOCKS
    blocks = weight[: weight.shape[0] - num_rest].unflatten(0, (_NUM_BLOCKS, -1))
    columns = torch.bmm(blocks, inputs.T.expand(_NUM_BLOCKS, -1, -1)).flatten(0, 1)
    if num_rest:
        columns = torch.cat((columns, weight[-num_rest:] @ inputs.T))
    return columns.T


def add_vector_product(addend: torch.Tensor, weight: torch.Tensor, vector: torch.Tensor) -> torch.Tensor:
    """`addend + weight @ vector`: [O], [O, I] and [I] -> [O]. A library does it on one thread; blocks go to all."""
    if torch.get_num_threads() == 1:
        return torch.addmv(addend, weight, vector)
    if weight.shape[0] % _NUM_BLOCKS:
        return addend + small_product(vector.unsqueeze(0), weight)[0]
    rows = vector.expand(_NUM_BLOCKS, 1, -1)
    blocks = weight.unflatten(0, (_NUM_BLOCKS, -1)).mT
    return torch.baddbmm(addend.view(_NUM_BLOCKS, 1, -1), rows, blocks).view(-1)


def apply_linear(module: nn.Module, inputs: torch.Tensor) -> torch.Tensor:
    """`module(inputs)` for a linear map of [..., I], by the faster way where it is one."""
    if torch.is_grad_enabled() or torch.is_autocast_enabled(inputs.device.type) or not is_plain_linear(module):
        return module(inputs)
    rows, shape = inputs.reshape(-1, inputs.shape[-1]), (*inputs.shape[:-1], module.weight.shape[0])
    if not is_small_product(rows, module.weight):
        return module(inputs)
    if rows.shape[0] == 1 and module.bias is not None:
        return add_vector_product(module.bias, module.weight, rows[0]).view(shape)
    outputs = small_product(rows, module.weight)
    if module.bias is None:
        return outputs.contiguous().view(shape)
    # Turned back in the same go.
    added = rows.new_empty(rows.shape[0], module.weight.shape[0])
    return torch.add(outputs, module.bias, out=added).view(shape)


def project_words(lm_head: nn.Module, states: torch.Tensor, step_mask: torch.Tensor | None) -> torch.Tensor:
    """States [B, T, D] -> scores of the next word [B, T, V]; all 0, and no work, where `step_mask` [B, T] is false."""
    if step_mask is None:
        return apply_linear(lm_head, states)
    if not has_values(states):
        return lm_head(states).masked_fill(~step_mask.unsqueeze(2), 0.0)
    rows = step_mask.flatten().nonzero().squeeze(1)
    scores = apply_linear(lm_head, states.flatten(0, 1).index_select(0, rows))
    spread = scores.new_zeros(step_mask.numel(), scores.shape[1]).index_copy_(0, rows, scores)
    return spread.unflatten(0, step_mask.shape)
