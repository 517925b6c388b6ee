"""
Products with a large weight on a CPU, in single precision.

PyTorch gives them to MKL, which shares few rows badly among threads. oneDNN, which compiled models get theirs from, is
part of the same builds of PyTorch and takes two thirds of the time on two threads of an AMD processor, half of it for
some ten rows. With one row a product is bound by reading the weight: all threads can share that, cut into blocks.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from .plain_modules import is_plain_linear
from .tensor_values import has_values

_NUM_BLOCKS = 8
# Below this many numbers there is nothing to gain.
_MIN_WEIGHT = 1 << 18
# Numbers of rows are rounded up to multiples of the first or, if there are more of them, of the second.
_FEW_ROWS, _MANY_ROWS = 8, 32


def _has_onednn() -> bool:
    """Other builds of PyTorch lack it; it is PyTorch's own, and a later version may."""
    return torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


HAS_ONEDNN = _has_onednn()


def suits_onednn(inputs: torch.Tensor, weight: torch.Tensor) -> bool:
    """Whether oneDNN can take `inputs @ weight.T` and is worth it. It makes no gradients."""
    return (
        HAS_ONEDNN
        and weight.numel() >= _MIN_WEIGHT
        and inputs.device.type == weight.device.type == "cpu"
        and weight.dtype == inputs.dtype == torch.float32
        and has_values(inputs)
        and not torch.is_grad_enabled()
        # Of a matrix cut out of a larger one it would look up number by number.
        and _is_whole(inputs)
        and _is_whole(weight)
    )


def _is_whole(matrix: torch.Tensor) -> bool:
    return matrix.is_contiguous() or matrix.T.is_contiguous()


def product(inputs: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """`inputs @ weight.T + bias`: [n, I], [O, I] and [O] -> [n, O]. Both may be transposes of what lies in memory."""
    if not suits_onednn(inputs, weight):
        return inputs @ weight.T if bias is None else torch.addmm(bias, inputs, weight.T)
    num_rows = inputs.shape[0]
    # It makes and keeps a program for every number of rows it is given: a millisecond and up to a megabyte each.
    if num_missing := -num_rows % (_FEW_ROWS if num_rows <= _MANY_ROWS else _MANY_ROWS):
        inputs = functional.pad(inputs, (0, 0, 0, num_missing))
    # It takes no account of how a bias lies in memory.
    bias = None if bias is None else bias.contiguous()
    return torch.ops.mkldnn._linear_pointwise(inputs, weight, bias, "none", [], "")[:num_rows]


def add_vector_product(addend: torch.Tensor, weight: torch.Tensor, vector: torch.Tensor) -> torch.Tensor:
    """`addend + weight @ vector`: [O], [O, I] and [I] -> [O]. A library does it on one thread; blocks go to all."""
    if torch.get_num_threads() == 1 or weight.shape[0] < _NUM_BLOCKS:
        return torch.addmv(addend, weight, vector)
    if num_rest := weight.shape[0] % _NUM_BLOCKS:
        parts = ((addend[:-num_rest], weight[:-num_rest]), (addend[-num_rest:], weight[-num_rest:]))
        return torch.cat([add_vector_product(*part, vector) for part in parts])
    rows = vector.expand(_NUM_BLOCKS, 1, -1)
    blocks = weight.unflatten(0, (_NUM_BLOCKS, -1)).mT
    return torch.baddbmm(addend.view(_NUM_BLOCKS, 1, -1), rows, blocks).view(-1)


def apply_linear(module: nn.Module, inputs: torch.Tensor) -> torch.Tensor:
    """`module(inputs)` for a linear map of [..., I], by the faster way where it is one."""
    if torch.is_grad_enabled() or torch.is_autocast_enabled(inputs.device.type) or not is_plain_linear(module):
        return module(inputs)
    rows = inputs.reshape(-1, inputs.shape[-1]).contiguous()
    if not suits_onednn(rows, module.weight):
        return module(inputs)
    if rows.shape[0] == 1 and module.bias is not None:
        outputs = add_vector_product(module.bias, module.weight, rows[0])
    else:
        outputs = product(rows, module.weight, module.bias)
    return outputs.view(*inputs.shape[:-1], outputs.shape[-1])


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
