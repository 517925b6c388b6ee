# Copyright 2026 The hf_storyend authors.
# SPDX-License-Identifier: Apache-2.0
"""Small tensor helpers: masked softmax, packed tokens, and what a fast path must know before it is taken."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional


def masked_softmax(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """
    Softmax over the last dimension of `scores` where `mask` is true, zero elsewhere.

    A row without any real entry gets weight zero everywhere, never NaN, and passes no gradient.
    """
    scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return scores.softmax(dim=-1) * mask


def weighted_sum(weights: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
    """Sum of vectors [..., N, G] with weights [..., N] -> [..., G]."""
    return (weights.unsqueeze(-2) @ vectors).squeeze(-2)


def is_eager_mode(tensor: torch.Tensor) -> bool:
    """False while tracing, compiling or on the meta device: no data-dependent control flow there."""
    return not torch.compiler.is_compiling() and not tensor.is_meta


def upcast(tensor: torch.Tensor) -> torch.Tensor:
    """Half precision to float32, for sums over thousands of entries; other dtypes unchanged."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def distinct_triples(
    triple_ids: torch.Tensor, triple_mask: torch.Tensor, num_relations: int, num_words: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Distinct triples [U, 3] and, for every position [...], the row of its triple; any row where there is none."""
    if not is_eager_mode(triple_ids):
        # The number of distinct triples depends on the data.
        index = torch.arange(triple_mask.numel(), device=triple_ids.device)
        return (triple_ids * triple_mask.unsqueeze(-1)).view(-1, 3), index.view(triple_mask.shape)
    heads, relations, tails = triple_ids[triple_mask].unbind(-1)
    keys, rows = torch.unique((heads * num_relations + relations) * num_words + tails, return_inverse=True)
    index = torch.zeros_like(triple_mask, dtype=rows.dtype).masked_scatter_(triple_mask, rows)
    pairs, tails = keys // num_words, keys % num_words
    return torch.stack((pairs // num_relations, pairs % num_relations, tails), dim=-1), index


def is_unmodified(module: nn.Module, expected: type[nn.Module]) -> bool:
    """
    True unless hooks, adapters or quantisation change what calling the module does, so that a fast path may read its
    weights instead. Adapters and quantisers replace the class, or the class of the weights; offloading replaces
    `forward` of the instance.
    """
    hooks = (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks, module._backward_pre_hooks)
    return (
        type(module) is expected
        and not any(hooks)
        and "forward" not in vars(module)
        and all(type(weight) in (nn.Parameter, torch.Tensor) for weight in module.parameters(recurse=False))
    )


@dataclass
class PackedTokens:
    """R of the B * L tokens of a batch, packed into rows, so that nothing is computed for the others."""

    positions: torch.Tensor  # [R], position of each packed token in [B * L]
    rows: torch.Tensor  # [B, L], packed row of each token; R for tokens that are left out

    @classmethod
    def where(cls, mask: torch.Tensor) -> PackedTokens:
        """Pack the tokens where `mask` [B, L] is true; while tracing, all tokens."""
        every = torch.arange(mask.numel(), device=mask.device)
        if not is_eager_mode(mask):
            return cls(every, every.view(mask.shape))
        positions = mask.flatten().nonzero().squeeze(1)
        rows = torch.full_like(every, len(positions)).index_copy_(0, positions, every[: len(positions)])
        return cls(positions, rows.view(mask.shape))

    def gather(self, tokens: torch.Tensor) -> torch.Tensor:
        """[B, L, ...] -> [R, ...]."""
        return tokens.flatten(0, 1).index_select(0, self.positions)

    def scatter(self, packed: torch.Tensor) -> torch.Tensor:
        """[R, ...] -> [B, L, ...], zero at tokens that are left out."""
        return functional.embedding(self.rows, torch.cat((packed, packed.new_zeros(1, *packed.shape[1:]))))
