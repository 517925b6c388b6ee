"""Some of the words of a text, in rows of their own: those that are not padding, those that have triples."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.nn import functional

from .tensor_values import has_values


@dataclass
class WordRows:
    """R of the words [B, L], so that nothing is computed for the others."""

    places: torch.Tensor  # [R], where in [B * L] each of them stands
    rows: torch.Tensor  # [B, L], the row of each word; R for the others

    @property
    def num_rows(self) -> int:
        return self.places.shape[0]

    def pick(self, of_words: torch.Tensor) -> torch.Tensor:
        """[B, L, ...] -> [R, ...]."""
        return of_words.flatten(0, 1).index_select(0, self.places)

    def spread(self, of_rows: torch.Tensor) -> torch.Tensor:
        """[R, ...] -> [B, L, ...], zero at the other words."""
        return functional.embedding(self.rows, with_zeros_behind(of_rows))


@dataclass
class KnownWords:
    """The words that have triples, which most have not."""

    words: WordRows
    triples: torch.Tensor  # [R, N], number of each triple
    mask: torch.Tensor  # [R, N], true at triples


@dataclass
class Graphs:
    """Graph vectors [R, G] of the words that have triples, and the weights [R, N] of the triples inside each."""

    words: WordRows
    vectors: torch.Tensor
    weights: torch.Tensor


def with_zeros_behind(rows: torch.Tensor) -> torch.Tensor:
    return torch.cat((rows, rows.new_zeros(1, *rows.shape[1:])))


def find_words(mask: torch.Tensor) -> WordRows:
    """The words where `mask` [B, L] is true or, where data may not be looked at, all of them."""
    every_place = torch.arange(mask.numel(), device=mask.device)
    if not has_values(mask):
        return WordRows(every_place, every_place.view(mask.shape))
    places = mask.flatten().nonzero().squeeze(1)
    num_rows = places.shape[0]
    rows = torch.full_like(every_place, num_rows).index_copy_(0, places, every_place[:num_rows])
    return WordRows(places, rows.view(mask.shape))


def find_known_words(triples: torch.Tensor, mask: torch.Tensor) -> KnownWords:
    """The words that have any of N triples [B, L, N]."""
    words = find_words(mask.any(dim=-1))
    return KnownWords(words, words.pick(triples), words.pick(mask))


def distinct_graphs(triples: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The distinct graphs among rows [R, N]: triples and mask [Q, N] of each, and for every row which it is [R]."""
    rows = torch.arange(mask.shape[0], device=mask.device)
    if not has_values(mask) or not mask.shape[0]:
        return triples, mask, rows
    # Column by column, rows that were the same up to there are told apart; `unique` of whole rows compares one by one.
    which = torch.zeros_like(rows)
    for column in triples.masked_fill(~mask, -1).unbind(dim=1):
        _, which = torch.unique(which * (triples.max() + 2) + column + 1, return_inverse=True)
    num_graphs = int(which.max()) + 1
    one_of_each = rows.new_empty(num_graphs).scatter_(0, which, rows)
    return triples[one_of_each], mask[one_of_each], which
