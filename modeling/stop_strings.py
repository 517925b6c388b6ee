# Copyright 2026 The hf_storyend authors.
# SPDX-License-Identifier: Apache-2.0
"""`stop_strings` of `generate()` for tokens that are words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from transformers import StoppingCriteria


class StopAtStrings(StoppingCriteria):
    """
    Stops a row whose last word completes one of the strings, in the text as it is printed.

    Args:
        strings (`str` or `list[str]`): The strings.
        tokenizer: What decodes the rows.
        to_named (`Callable`, *optional*): Makes ids that spell words out of the vocabulary from what is generated.
    """

    def __init__(
        self,
        strings: str | Sequence[str],
        tokenizer: Any,
        to_named: Callable[[torch.Tensor], torch.Tensor] | None = None,
    ):
        self.strings = [strings] if isinstance(strings, str) else list(strings)
        self.tokenizer = tokenizer
        self.to_named = to_named

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor, **kwargs: Any) -> torch.BoolTensor:
        ids = input_ids if self.to_named is None else self.to_named(input_ids)
        stops = [self._count(row) > self._count(row[:-1]) for row in ids.tolist()]
        return torch.tensor(stops, dtype=torch.bool, device=input_ids.device)

    def _count(self, row: list[int]) -> int:
        text = self.tokenizer.decode(row, skip_special_tokens=True)
        return sum(text.count(string) for string in self.strings)
