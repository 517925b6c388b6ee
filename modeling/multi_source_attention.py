"""Multi-source attention: one context vector from the hidden states and the graph vectors of a sentence."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from .configuration_incremental_encoder import IncrementalEncoderConfig
from .masked_softmax import masked_softmax


@dataclass
class SentenceMemory:
    """
    A sentence as the next one will read it. Keys and values of the sources stand one after the other: the L hidden
    states first, then, if there is knowledge, the L graph vectors (S sources in all).
    """

    keys: torch.Tensor  # [B, S * L, D]
    values: torch.Tensor  # [B, S * L, D]
    mask: torch.Tensor  # [B, L], true at words

    def replaced_where(self, rows: torch.Tensor, new: SentenceMemory) -> SentenceMemory:
        """`new` in the rows [B] that are true, this memory in the others."""
        cube, square = rows[:, None, None], rows[:, None]
        return SentenceMemory(
            torch.where(cube, new.keys, self.keys),
            torch.where(cube, new.values, self.values),
            torch.where(square, new.mask, self.mask),
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
        self.has_knowledge = config.knowledge is not None
        self.state_scorer = nn.Linear(config.hidden_size, config.hidden_size, bias=False)
        if self.has_knowledge:
            self.knowledge_scorer = nn.Linear(config.graph_size, config.hidden_size, bias=False)
        self.merge = nn.Linear(config.hidden_size + config.graph_size, config.hidden_size)

    def remember(
        self, states: torch.Tensor, graph_vectors: torch.Tensor | None, word_mask: torch.Tensor
    ) -> SentenceMemory:
        """Memory of a sentence from its states [B, L, D] and graph vectors [B, L, G] at the words."""
        merge_states, merge_graphs = self.merge.weight.tensor_split((self.hidden_size,), dim=1)
        keys, values = self.state_scorer(states), states @ merge_states.T
        if self.has_knowledge:
            keys = torch.cat((keys, self.knowledge_scorer(graph_vectors)), dim=1)
            values = torch.cat((values, graph_vectors @ merge_graphs.T), dim=1)
        return SentenceMemory(keys, values, word_mask)

    def forward(self, query: torch.Tensor, memory: SentenceMemory | None) -> tuple[torch.Tensor, torch.Tensor | None]:
        """
        Context [B, D] for a query [B, D], and the weights [B, S, L] over states and graphs. Where there is no
        preceding sentence the context is zero: the first sentence is read by a plain LSTM.
        """
        if memory is None:
            return torch.zeros_like(query), None
        batch_size, num_words = memory.mask.shape
        scores = (memory.keys @ query.unsqueeze(-1)).view(batch_size, -1, num_words)  # [B, S, L]
        weights = masked_softmax(scores, memory.mask.unsqueeze(1))
        context = (weights.flatten(1).unsqueeze(1) @ memory.values).squeeze(1) + self.merge.bias
        return context * memory.mask.any(dim=1, keepdim=True), weights
