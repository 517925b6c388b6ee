"""The LSTM that reads sentences and writes endings: one stack of layers, fed with a word and a context vector."""

from __future__ import annotations

import torch
from torch import nn

# State of all layers: a list of (hidden [B, D], cell [B, D]), the first layer first.
LSTMState = list[tuple[torch.Tensor, torch.Tensor]]


class ContextLSTM(nn.Module):
    """
    LSTM of several layers whose first one reads `[word vector ; context vector]`.

    The part of the first layer that depends on the word alone, `word_gates`, is a product for all words at once; the
    rest, `step_gates`, waits for the step. Gates are in the order input, forget, candidate, output.
    """

    def __init__(self, embedding_size: int, hidden_size: int, num_layers: int, dropout: float):
        super().__init__()
        self.hidden_size = hidden_size
        self.word_gates = nn.Linear(embedding_size, 4 * hidden_size)
        # The first layer's bias is the one of `word_gates`.
        self.step_gates = nn.ModuleList(
            nn.Linear(2 * hidden_size, 4 * hidden_size, bias=layer > 0) for layer in range(num_layers)
        )
        self.dropout = nn.Dropout(dropout)

    def initial_state(self, batch_size: int, like: torch.Tensor) -> LSTMState:
        zeros = like.new_zeros(batch_size, self.hidden_size)
        return [(zeros, zeros) for _ in self.step_gates]

    def project_words(self, word_vectors: torch.Tensor) -> torch.Tensor:
        """The words' share in the first layer's gates, for every position: [B, J, E] -> [B, J, 4D]."""
        return self.word_gates(self.dropout(word_vectors))

    def forward(self, word_gates: torch.Tensor, context: torch.Tensor, state: LSTMState) -> LSTMState:
        """One step: word_gates [B, 4D], context [B, D] and the state before it -> the state after it."""
        new_state: LSTMState = []
        layer_input = context
        for layer, (hidden, cell) in enumerate(state):
            gates = self.step_gates[layer](torch.cat((layer_input, hidden), dim=-1))
            if layer == 0:
                gates = gates + word_gates
            hidden, cell = self._open_gates(gates, cell)
            new_state.append((hidden, cell))
            layer_input = self.dropout(hidden)
        return new_state

    @staticmethod
    def _open_gates(gates: torch.Tensor, cell: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        write, keep, candidate, show = gates.chunk(4, dim=-1)
        cell = keep.sigmoid() * cell + write.sigmoid() * candidate.tanh()
        return show.sigmoid() * cell.tanh(), cell


def keep_state_where(mask: torch.Tensor, new: LSTMState, old: LSTMState) -> LSTMState:
    """Rows of `new` where `mask` [B] is true, rows of `old` elsewhere: padding leaves a state as it was."""
    mask = mask.unsqueeze(-1)
    return [
        (torch.where(mask, new_hidden, hidden), torch.where(mask, new_cell, cell))
        for (new_hidden, new_cell), (hidden, cell) in zip(new, old, strict=True)
    ]


def stack_state(state: LSTMState) -> tuple[torch.Tensor, torch.Tensor]:
    """Batch-first tensors, as `generate()` needs them to expand and reorder: hidden and cell, both [B, layers, D]."""
    return torch.stack([hidden for hidden, _ in state], dim=1), torch.stack([cell for _, cell in state], dim=1)


def unstack_state(hidden: torch.Tensor, cell: torch.Tensor) -> LSTMState:
    return list(zip(hidden.unbind(1), cell.unbind(1), strict=True))
