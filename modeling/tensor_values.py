"""Of the numbers in a tensor: whether they can be looked at, and whether they are precise enough for long sums."""

from __future__ import annotations

import torch


def has_values(tensor: torch.Tensor) -> bool:
    """False while a graph is compiled and on the meta device: there, nothing may depend on the data."""
    return not torch.compiler.is_compiling() and not tensor.is_meta


def precise(tensor: torch.Tensor) -> torch.Tensor:
    """In single precision if it was in half: that is too coarse for a sum over thousands of words."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor
