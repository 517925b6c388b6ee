# Copyright 2026 The hf_storyend authors.
# SPDX-License-Identifier: Apache-2.0
"""Arguments of `generate()` that transformers would ignore for these models, or fail with in the middle."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
from transformers import GenerationConfig, LogitsProcessor, StoppingCriteria

_NO_GUIDANCE = "an ending is always conditioned on its story, so there are no other logits to guide away from"
_NESTED = "stories are nested, so their words are no prompt that the penalty could read; use `bad_words_ids`"
# Arguments that can't work: why, and the values that change nothing.
_UNSUPPORTED: dict[str, tuple[str, tuple]] = {
    "guidance_scale": (_NO_GUIDANCE, (1,)),
    "negative_prompt_ids": (_NO_GUIDANCE, ()),
    "negative_prompt_attention_mask": (_NO_GUIDANCE, ()),
    "encoder_repetition_penalty": (_NESTED, (1,)),
    "encoder_no_repeat_ngram_size": (_NESTED, (0,)),
    "token_healing": ("tokens are whole words", (False,)),
}


def check_arguments(config: GenerationConfig, given: Mapping[str, Any]) -> None:
    """
    Refuse what can't work with nested stories.

    Args:
        config (`GenerationConfig`): The caller's, or the model's.
        given (`dict`): Arguments of `generate()`, which win over the configuration.
    """
    for name, (reason, neutral) in _UNSUPPORTED.items():
        value = given[name] if name in given else getattr(config, name, None)
        if value is not None and (isinstance(value, torch.Tensor) or value not in neutral):
            raise ValueError(f"`{name}` is not supported: {reason}.")


def with_max_length(
    config: GenerationConfig | None, given: dict[str, Any]
) -> tuple[GenerationConfig | None, dict[str, Any]]:
    """
    The same arguments, with a `max_length` of the caller that wins over the `max_new_tokens` that a model was saved
    with: transformers would fill it in and let it win.
    """
    if given.get("max_new_tokens") is not None:
        return config, given
    if given.get("max_length") is not None:
        return config, {**given, "max_new_tokens": None}
    if config is None or config.max_length is None or config.max_new_tokens is not None:
        return config, given
    prompt = given.get("decoder_input_ids")
    config = copy.deepcopy(config)
    config.max_new_tokens = config.max_length - (1 if prompt is None else prompt.shape[1])
    config.max_length = None
    return config, given


class PadEndedPrompts(LogitsProcessor):
    """
    Writes padding behind prompts that have their end already, as one longer call does: `generate()` takes every prompt
    to be unfinished.

    Args:
        ends (`torch.LongTensor`): Ids that a finished prompt ends with.
        pad_token_id (`int`): Padding.
    """

    def __init__(self, ends: torch.Tensor, pad_token_id: int):
        self.ends, self.pad_token_id = ends, pad_token_id
        self._length: int | None = None

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        # Not before: generate() puts the start symbol before prompts without one.
        self._length = self._length or input_ids.shape[1]
        padding = torch.full_like(scores, -torch.inf)
        padding[:, self.pad_token_id] = 0.0
        return padding.where(self.have_ended(input_ids)[:, None], scores)

    def have_ended(self, ids: torch.Tensor) -> torch.Tensor:
        """True for rows whose prompt has its end."""
        return torch.isin(ids[:, (self._length or 0) - 1], self.ends.to(ids.device))


class StopEndedPrompts(StoppingCriteria):
    """Counts rows as finished that a `PadEndedPrompts` pads."""

    def __init__(self, padder: PadEndedPrompts):
        self.padder = padder

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor, **kwargs: Any) -> torch.BoolTensor:
        return self.padder.have_ended(input_ids)


def for_ended_prompts(
    prompts: torch.Tensor | None, eos_token_id: int | list[int], pad_token_id: int
) -> tuple[list[LogitsProcessor], list[StoppingCriteria]]:
    """What keeps prompts that have ended as they are; nothing if there are none."""
    # A prompt of one word is the start symbol.
    if prompts is None or prompts.shape[1] < 2:
        return [], []
    ends = [eos_token_id] if isinstance(eos_token_id, int) else eos_token_id
    padder = PadEndedPrompts(torch.tensor([*ends, pad_token_id]), pad_token_id)
    return ([padder], [StopEndedPrompts(padder)]) if padder.have_ended(prompts).any() else ([], [])
