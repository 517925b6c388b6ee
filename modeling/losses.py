"""Negative log likelihoods over real words only."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn import functional

from .tensor_values import has_values

IGNORED = -100


def sum_of_losses(
    states: torch.Tensor, targets: torch.Tensor, project: Callable[[torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    """
    Sum of -log P(target) over the targets that are not ignored: states [..., D], targets [...]. `project` maps states
    to logits; padded positions never reach it.
    """
    states, targets = states.flatten(0, -2), targets.flatten()
    if has_values(targets):
        real = (targets != IGNORED).nonzero().squeeze(-1)
        states, targets = states.index_select(0, real), targets.index_select(0, real)
    logits = project(states)
    # Half precision is too coarse for a sum over thousands of words.
    logits = logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits
    return functional.cross_entropy(logits, targets, ignore_index=IGNORED, reduction="sum")


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
