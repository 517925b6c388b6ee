"""The decoder's memory between two words: the state of every LSTM layer, in a cache that `generate()` can move."""

from __future__ import annotations

import torch
from transformers.cache_utils import Cache


class RecurrentCache(Cache):
    """
    LSTM state after the words decoded so far, batch first: `hidden` and `cell` are `[B, layers, D]`.

    Its size does not grow with the number of words; there is nothing to crop.
    """

    is_compileable = False
    is_croppable = False

    def __init__(self) -> None:
        super().__init__(layers=[])
        self.hidden: torch.Tensor | None = None
        self.cell: torch.Tensor | None = None
        self._num_words = 0

    def update_state(self, hidden: torch.Tensor, cell: torch.Tensor, num_new_words: int) -> None:
        self.hidden, self.cell = hidden, cell
        self._num_words += num_new_words

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return self._num_words

    def get_max_length(self, layer_idx: int = 0) -> int:
        return -1

    def reset(self) -> None:
        self.hidden = self.cell = None
        self._num_words = 0

    def reorder_cache(self, beam_idx: torch.LongTensor) -> None:
        self.batch_select_indices(beam_idx)

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        if self.hidden is not None and self.cell is not None:
            self.hidden = self.hidden.index_select(0, indices.to(self.hidden.device))
            self.cell = self.cell.index_select(0, indices.to(self.cell.device))

    def batch_repeat_interleave(self, repeats: int) -> None:
        if self.hidden is not None and self.cell is not None:
            self.hidden = self.hidden.repeat_interleave(repeats, dim=0)
            self.cell = self.cell.repeat_interleave(repeats, dim=0)

    def crop(self, tokens_to_remove: int) -> None:
        raise ValueError("A recurrent state can't be taken back by some words; decode again from the start instead.")
