"""Reading a sentence word by word: the recurrence as it is defined, for any attention."""

from __future__ import annotations

from collections.abc import Callable

import torch

from .lstm import ContextLSTM, LSTMState, keep_state_where
from .multi_source_attention import SentenceMemory
from .tensor_values import has_values

# Query [B, D] and memory -> context [B, D] and weights [B, S, L'], or None where there is nothing to attend to.
Attention = Callable[[torch.Tensor, SentenceMemory | None], tuple[torch.Tensor, torch.Tensor | None]]


def read_step_by_step(
    lstm: ContextLSTM,
    attention: Attention | None,
    word_vectors: torch.Tensor,
    state: LSTMState,
    memory: SentenceMemory | None,
    step_mask: torch.Tensor | None,
) -> tuple[list[torch.Tensor], LSTMState, torch.Tensor | None]:
    """
    States of each layer [B, J, D], state after the last step and attention [B, J, S, L'], by a plain loop. Without an
    `attention` there is no context. Steps not in `step_mask` [B, J] do nothing.
    """
    word_gates = lstm.project_words(word_vectors)
    steps, attentions = [], []
    for step in range(word_vectors.shape[1]):
        top_hidden = state[-1][0]
        context, weights = (None, None) if attention is None else attention(top_hidden, memory)
        mask = None if step_mask is None else step_mask[:, step]
        state = advance(lstm, word_gates[:, step], context, state, mask)
        steps.append([hidden for hidden, _ in state])
        attentions.append(weights)
    layer_states = [torch.stack(hiddens, dim=1) for hiddens in zip(*steps, strict=True)]
    if memory is None:
        return layer_states, state, None
    stacked = torch.stack(attentions, dim=1)
    return layer_states, state, stacked if step_mask is None else stacked * step_mask[..., None, None]


def advance(
    lstm: ContextLSTM,
    word_gates: torch.Tensor,
    context: torch.Tensor | None,
    state: LSTMState,
    mask: torch.Tensor | None,
) -> LSTMState:
    """The state after a step of the rows in `mask` [B]; the others keep theirs."""
    if mask is None:
        return lstm(word_gates, context, state)
    if torch.is_grad_enabled() or not has_values(mask):
        return keep_state_where(mask, lstm(word_gates, context, state), state)
    # Endings that are complete wait for the longest of the batch: half of the work, if it were done for them, too.
    rows = mask.nonzero().squeeze(1)
    context = None if context is None else context.index_select(0, rows)
    rows_state = [(hidden.index_select(0, rows), cell.index_select(0, rows)) for hidden, cell in state]
    new_state = lstm(word_gates.index_select(0, rows), context, rows_state)
    return [
        (hidden.index_copy(0, rows, new_hidden), cell.index_copy(0, rows, new_cell))
        for (hidden, cell), (new_hidden, new_cell) in zip(state, new_state, strict=True)
    ]
