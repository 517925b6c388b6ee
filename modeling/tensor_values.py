"""Whether the numbers in a tensor can be looked at, or only its shape."""

from __future__ import annotations

import torch


def has_values(tensor: torch.Tensor) -> bool:
    """False while a graph is compiled and on the meta device: there, nothing may depend on the data."""
    return not torch.compiler.is_compiling() and not tensor.is_meta
