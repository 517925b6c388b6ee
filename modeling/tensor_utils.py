# Copyright 2026 The hf_storyend authors.
# SPDX-License-Identifier: Apache-2.0
"""Small tensor helpers: masked softmax, host copies, packed tokens, and what a fast path must know beforehand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

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


def on_host(*tensors: torch.Tensor | None) -> list[Any]:
    """
    Integers and masks on the CPU, where sizes are decided. A GPU is waited for at every copy to the host: one copy
    brings them all. Tensors of the CPU, and those without values, are returned as they are.
    """
    away = [index for index, tensor in enumerate(tensors) if _is_away(tensor)]
    copies: list[Any] = list(tensors)
    if not away:
        return copies
    found = [copies[index] for index in away]
    numbers = torch.cat([tensor.flatten().long() for tensor in found]).cpu()
    parts = numbers.split([tensor.numel() for tensor in found])
    for index, tensor, part in zip(away, found, parts, strict=True):
        copies[index] = part.view(tensor.shape).to(tensor.dtype)
    return copies


def _is_away(tensor: torch.Tensor | None) -> bool:
    return isinstance(tensor, torch.Tensor) and is_eager_mode(tensor) and tensor.device.type != "cpu"


class DistinctTriples(NamedTuple):
    """The U distinct triples of a batch, and where they stand."""

    ids: torch.Tensor  # [U, 3]; more rows, which nothing points to, as long as U is not known
    index: torch.Tensor  # [...], the row of each position's triple; any row where there is none
    count: torch.Tensor  # [], U

    def first(self, count: int) -> DistinctTriples:
        """Once U is known on the host."""
        return DistinctTriples(self.ids[:count], self.index, self.count)


def distinct_triples(
    triple_ids: torch.Tensor, triple_mask: torch.Tensor, num_relations: int, num_words: int
) -> DistinctTriples:
    """Find equal triples among triple_ids [..., 3], without asking the device how many there are."""
    if not is_eager_mode(triple_ids):
        # All of them, as they stand: U would be read from the data.
        index = torch.arange(triple_mask.numel(), device=triple_ids.device)
        ids = (triple_ids * triple_mask.unsqueeze(-1)).view(-1, 3)
        return DistinctTriples(ids, index.view(triple_mask.shape), index[-1] + 1)
    heads, relations, tails = triple_ids.unbind(-1)
    # Padding is sorted behind all triples.
    padding = torch.iinfo(torch.int64).max
    keys = ((heads * num_relations + relations) * num_words + tails).masked_fill(~triple_mask, padding)
    ordered, order = keys.flatten().sort()
    is_new = functional.pad(ordered[1:] != ordered[:-1], (1, 0), value=True)
    groups = is_new.cumsum(0) - 1
    index = torch.empty_like(groups).scatter_(0, order, groups).view(triple_mask.shape).masked_fill_(~triple_mask, 0)
    keys = torch.zeros_like(ordered).scatter_(0, groups, ordered)
    pairs, tails = keys // num_words, keys % num_words
    ids = torch.stack((pairs // num_relations, pairs % num_relations, tails), dim=-1)
    return DistinctTriples(ids, index, (is_new & (ordered != padding)).sum())


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
    def where(cls, mask: torch.Tensor, device: torch.device) -> PackedTokens:
        """Pack the tokens where a mask [B, L] of the host is true; while tracing, all tokens."""
        every = torch.arange(mask.numel(), device=mask.device)
        if not is_eager_mode(mask):
            return cls(every, every.view(mask.shape))
        positions = mask.flatten().nonzero().squeeze(1)
        rows = torch.full_like(every, len(positions)).index_copy_(0, positions, every[: len(positions)])
        return cls(positions.to(device), rows.view(mask.shape).to(device))

    def gather(self, tokens: torch.Tensor) -> torch.Tensor:
        """[B, L, ...] -> [R, ...]."""
        return tokens.flatten(0, 1).index_select(0, self.positions)

    def scatter(self, packed: torch.Tensor) -> torch.Tensor:
        """[R, ...] -> [B, L, ...], zero at tokens that are left out."""
        return functional.embedding(self.rows, torch.cat((packed, packed.new_zeros(1, *packed.shape[1:]))))
