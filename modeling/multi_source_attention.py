"""Multi-source attention: one context vector from the hidden states and the graph vectors of a sentence."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from .configuration_incremental_encoder import IncrementalEncoderConfig
from .masked_softmax import masked_softmax
from .plain_modules import is_plain
from .tensor_values import has_values
from .word_rows import Graphs, find_words, with_zeros_behind


@dataclass
class SentenceMemory:
    """
    A sentence as the next one will read it. Keys and values of the sources stand one after the other: the L hidden
    states first, then, if there is knowledge, the L graph vectors (S sources in all).
    """

    keys: torch.Tensor  # [B, S * L, D]
    values: torch.Tensor  # [B, S * L, D]
    mask: torch.Tensor  # [B, S, L], true at what can be read: words, and graphs of words

    @property
    def has_words(self) -> torch.Tensor:
        """[B], false in rows that have no word to read."""
        return self.mask[:, 0].any(dim=1)

    def for_rows(self, num_rows: int) -> SentenceMemory:
        """The memory for rows that share it, as beams do: the first ones the first story's, and so on."""
        num_sharing = num_rows // self.mask.shape[0]
        if num_sharing == 1:
            return self
        return SentenceMemory(
            *(tensor.repeat_interleave(num_sharing, dim=0) for tensor in (self.keys, self.values, self.mask))
        )

    def replaced_where(self, rows: torch.Tensor, new: SentenceMemory) -> SentenceMemory:
        """`new` in the rows [B] that are true, this memory in the others."""
        if has_values(rows) and rows.all():
            return new
        rows = rows[:, None, None]
        return SentenceMemory(
            torch.where(rows, new.keys, self.keys),
            torch.where(rows, new.values, self.values),
            torch.where(rows, new.mask, self.mask),
        )


class MultiSourceAttention(nn.Module):
    """
    Bilinear attention over each source, the two reads merged by a linear map.

    Scorers and merge are applied to the sentence once, when its memory is made, so that a step costs two small
    products: with `keys = W h` the score is `query . key`, and with `values = W_l h` the merged context is their sum.
    """

    def __init__(self, config: IncrementalEncoderConfig):
        super().__init__()
        self.hidden_size = config.hidden_size
        # The scorers learn to be this much larger. A score sums D x D products: without the factor some steps of Adam,
        # which moves all weights alike, turn attention into a choice of one word that can't be undone.
        self.score_scale = config.hidden_size**-0.5
        self.has_knowledge = config.knowledge is not None
        self.attends_empty_graphs = config.attend_empty_graphs
        self.state_scorer = nn.Linear(config.hidden_size, config.hidden_size, bias=False)
        if self.has_knowledge:
            self.knowledge_scorer = nn.Linear(config.graph_size, config.hidden_size, bias=False)
        self.merge = nn.Linear(config.hidden_size + config.graph_size, config.hidden_size)

    @property
    def can_fold_merge(self) -> bool:
        """Whether W_l can be applied to the sentence instead of to what a step reads of it."""
        return is_plain(self.merge, nn.Linear)

    def remember(
        self, states: torch.Tensor, graphs: Graphs | torch.Tensor | None, word_mask: torch.Tensor
    ) -> SentenceMemory:
        """Memory of a sentence from its states [B, L, D] at the words and its graphs, or graph vectors [B, L, G]."""
        words = find_words(word_mask)
        # Only words, and graphs where there are any, are multiplied; one row of zeros stands for all others.
        states = with_zeros_behind(words.pick(states))
        keys, values, index = self.state_scorer(states), self._state_values(states), words.rows
        masks = [word_mask]
        if graphs is not None:
            masks.append(word_mask if self.attends_empty_graphs else word_mask & _has_triples(graphs))
            vectors, rows = _rows_of(graphs)
            vectors = with_zeros_behind(vectors)
            keys = torch.cat((keys, self.knowledge_scorer(vectors)))
            values = torch.cat((values, self._graph_values(vectors)))
            index = torch.cat((index, rows + states.shape[0]), dim=1)
        mask = torch.stack(masks, dim=1)
        keys = functional.embedding(index, keys * self.score_scale)
        return SentenceMemory(keys, functional.embedding(index, values), mask)

    def _state_values(self, states: torch.Tensor) -> torch.Tensor:
        """Their share in the merged context or, if the merge must be called at every step, in its input."""
        if not self.can_fold_merge:
            return functional.pad(states, (0, self.merge.in_features - self.hidden_size))
        return states @ self.merge.weight[:, : self.hidden_size].T

    def _graph_values(self, graph_vectors: torch.Tensor) -> torch.Tensor:
        if not self.can_fold_merge:
            return functional.pad(graph_vectors, (self.hidden_size, 0))
        return graph_vectors @ self.merge.weight[:, self.hidden_size :].T

    def forward(self, query: torch.Tensor, memory: SentenceMemory | None) -> tuple[torch.Tensor, torch.Tensor | None]:
        """
        Context [B, D] for a query [B, D], and the weights [B, S, L] over states and graphs. Where there is no
        preceding sentence the context is zero: the first sentence is read by a plain LSTM. Rows may share a memory, as
        beams do: with fewer memories than rows, each is for as many rows that stand one behind the other.
        """
        if memory is None:
            return torch.zeros_like(query), None
        num_memories, num_sources, num_words = memory.mask.shape
        queries = query.view(num_memories, -1, query.shape[-1])  # [M, B / M, D]
        scores = (queries @ memory.keys.mT).unflatten(-1, (num_sources, num_words))  # [M, B / M, S, L]
        weights = masked_softmax(scores, memory.mask[:, None])
        reads = weights.flatten(2) @ memory.values
        context = reads + self.merge.bias if self.can_fold_merge else self.merge(reads)
        context = context * memory.has_words[:, None, None]
        return context.flatten(0, 1), weights.flatten(0, 1)


def _has_triples(graphs: Graphs | torch.Tensor) -> torch.Tensor:
    """[B, L], true at words with triples: their weights sum to 1, those of others to 0."""
    if isinstance(graphs, Graphs):
        return graphs.words.spread(graphs.weights.sum(dim=1, keepdim=True)).squeeze(2) > 0.5
    return graphs.any(dim=2)


def _rows_of(graphs: Graphs | torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Graph vectors [R, G], and for every word [B, L] which is its own, or R."""
    if isinstance(graphs, Graphs):
        return graphs.vectors, graphs.words.rows
    vectors = graphs.flatten(0, 1)
    return vectors, torch.arange(vectors.shape[0], device=vectors.device).view(graphs.shape[:2])
