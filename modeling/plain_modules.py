"""Whether the weights of a module say all about it."""

from __future__ import annotations

import torch
from torch import nn


def is_plain(module: nn.Module, kind: type[nn.Module]) -> bool:
    """
    True if `module` does what its class says, so that a fast path may use its weights instead of calling it.
    Adapters and quantisers put another class, or weights of another class, in its place; hooks, and libraries that
    move weights between devices, act when it is called.
    """
    return type(module) is kind and _is_untouched(module)


def is_plain_linear(module: nn.Module) -> bool:
    """The same for any class of linear maps that computes as `nn.Linear` does."""
    return type(module).forward is nn.Linear.forward and _is_untouched(module)


def _is_untouched(module: nn.Module) -> bool:
    has_hooks = module._forward_hooks or module._forward_pre_hooks or module._backward_hooks
    has_tensors = all(
        type(weight) in (nn.Parameter, torch.Tensor) for weight in module._parameters.values() if weight is not None
    )
    return not has_hooks and has_tensors and "forward" not in vars(module)
