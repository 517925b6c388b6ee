"""A softmax over the real entries only, defined also where there is none."""

from __future__ import annotations

import torch


def masked_softmax(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """
    Softmax over the last dimension of `scores` where `mask` is true, zero elsewhere.

    A row without any real entry gets weight zero everywhere, never NaN, and passes no gradient.
    """
    scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return scores.softmax(dim=-1) * mask
