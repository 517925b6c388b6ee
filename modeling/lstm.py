"""The LSTM that reads sentences and writes endings: one stack of layers, fed with a word and a context vector."""

from __future__ import annotations

import torch
from torch import nn

from .configuration_incremental_encoder import IncrementalEncoderConfig
from .cpu_products import apply_linear

# State of all layers: a list of (hidden [B, D], cell [B, D]), the first layer first.
LSTMState = list[tuple[torch.Tensor, torch.Tensor]]


class GateLinear(nn.Linear):
    """
    Linear map to the four gates, in the order input, forget, candidate, output. `init_std` is the standard deviation
    of its weights before training; the forget gate's bias is then 1, so that a state passes from sentence to
    sentence before anything is learnt.
    """

    def __init__(self, in_features: int, hidden_size: int, bias: bool = True, *, init_std: float):
        super().__init__(in_features, 4 * hidden_size, bias=bias)
        self.init_std = init_std

    def initial_bias(self) -> torch.Tensor:
        bias = torch.zeros_like(self.bias)
        bias.chunk(4)[1].fill_(1.0)
        return bias


class ContextLSTM(nn.Module):
    """
    LSTM of several layers whose first one reads `[word vector ; context vector]`, or vectors alone.

    The part of the first layer that depends on the word alone, `word_gates`, is a product for all words at once; the
    rest, `step_gates`, waits for the step.

    Args:
        config: Sizes, dropout and the spread of word vectors.
        input_size: Size of what is read instead of word vectors, if it is something else: states, of an LSTM below.
        has_context: Whether there is a context vector.
    """

    def __init__(self, config: IncrementalEncoderConfig, input_size: int | None = None, has_context: bool = True):
        super().__init__()
        self.hidden_size = config.hidden_size
        # Words reach the gates with unit variance, whatever the spread of their vectors.
        word_std = config.embedding_size**-0.5 / config.initializer_range
        self.word_gates = GateLinear(
            input_size or config.embedding_size,
            config.hidden_size,
            init_std=word_std if input_size is None else input_size**-0.5,
        )
        # The first layer's bias is the one of `word_gates`.
        self.step_gates = nn.ModuleList(
            GateLinear(
                config.hidden_size * (2 if layer > 0 or has_context else 1),
                config.hidden_size,
                bias=layer > 0,
                init_std=config.hidden_size**-0.5,
            )
            for layer in range(config.num_layers)
        )
        self.dropout = nn.Dropout(config.dropout)

    def initial_state(self, batch_size: int, like: torch.Tensor) -> LSTMState:
        zeros = like.new_zeros(batch_size, self.hidden_size)
        return [(zeros, zeros) for _ in self.step_gates]

    def project_words(self, word_vectors: torch.Tensor) -> torch.Tensor:
        """The words' share in the first layer's gates, for every position: [B, J, E] -> [B, J, 4D]."""
        return apply_linear(self.word_gates, self.dropout(word_vectors))

    def forward(self, word_gates: torch.Tensor, context: torch.Tensor | None, state: LSTMState) -> LSTMState:
        """One step: word_gates [B, 4D], context [B, D] if there is one, and the state before it -> that after it."""
        new_state: LSTMState = []
        layer_input = context
        for layer, (hidden, cell) in enumerate(state):
            inputs = hidden if layer_input is None else torch.cat((layer_input, hidden), dim=-1)
            gates = apply_linear(self.step_gates[layer], inputs)
            if layer == 0:
                gates = gates + word_gates
            hidden, cell = self.open_gates(gates, cell)
            new_state.append((hidden, cell))
            layer_input = self.dropout(hidden)
        return new_state

    @staticmethod
    def open_gates(gates: torch.Tensor, cell: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Hidden state and cell [..., D] after a step, from what goes into its gates [..., 4D] and the cell before."""
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
