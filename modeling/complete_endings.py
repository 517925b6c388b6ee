"""Endings that are complete while `generate()` goes on with others of the batch: nobody needs to read them."""

from __future__ import annotations

from contextvars import ContextVar

import torch

from .tensor_values import has_values

# In the call of `generate()` that this thread is in: for each story [B, 1], whether its beams may still get better, or
# None if there are no beams. Those of a decided story are carried along until the last one of the batch is decided.
open_stories: ContextVar[torch.Tensor | None] = ContextVar("open_stories", default=None)


def mask_of_open_endings(words: torch.Tensor, pad_token_id: int) -> torch.Tensor | None:
    """
    Which of words [rows, T] are to be read, if not all: none of a row whose story is decided, or behind whose ending
    `generate()` has put padding, which is never chosen. On a GPU nobody looks: to wait for the answer would cost more.
    """
    if words.shape[0] == 1 or words.device.type != "cpu" or not has_values(words):
        return None
    is_open = words[:, -1:] != pad_token_id
    if (stories := open_stories.get()) is not None:
        is_open = is_open & stories.repeat_interleave(words.shape[0] // stories.shape[0], dim=0)
    return None if is_open.all() else is_open.expand_as(words)


def check_prompts(decoder_attention_mask: torch.Tensor | None) -> None:
    """Refuse prompts [rows, T] that end before others: the word behind them would be chosen from no scores at all."""
    if decoder_attention_mask is not None and not decoder_attention_mask[:, -1].all():
        raise ValueError(
            "`decoder_attention_mask` has 0 at the end of a prompt: `generate()` goes on with prompts of one length "
            "only. Give those of each length on their own, without a mask."
        )
