"""Words that are never written, whatever the decoding strategy."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from transformers import LogitsProcessor


class ForbiddenWords(LogitsProcessor):
    """
    Gives some words no chance. As `suppress_tokens` would, but that one looks through the whole vocabulary at every
    step, which is a tenth of the time of writing a single ending.

    Args:
        word_ids: The words.
        in_place: Whether scores may be changed. With beams they are the largest tensor there is, and a copy at every
            step is needed only if somebody wants them as they were, too.
    """

    def __init__(self, word_ids: Iterable[int], in_place: bool = False):
        self.word_ids = torch.tensor(sorted(set(word_ids)))
        self.in_place = in_place

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        self.word_ids = self.word_ids.to(scores.device)
        fill = scores.index_fill_ if self.in_place else scores.index_fill
        return fill(-1, self.word_ids, float("-inf"))
