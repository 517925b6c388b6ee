"""Reading a sentence word by word: the recurrence as it is defined, for any attention."""

from __future__ import annotations

from collections.abc import Callable

import torch

from .lstm import ContextLSTM, LSTMState, keep_state_where
from .multi_source_attention import SentenceMemory

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
    `attention` there is no context.
    """
    word_gates = lstm.project_words(word_vectors)
    steps, attentions = [], []
    for step in range(word_vectors.shape[1]):
        top_hidden = state[-1][0]
        context, weights = (None, None) if attention is None else attention(top_hidden, memory)
        new_state = lstm(word_gates[:, step], context, state)
        state = new_state if step_mask is None else keep_state_where(step_mask[:, step], new_state, state)
        steps.append([hidden for hidden, _ in state])
        attentions.append(weights)
    layer_states = [torch.stack(hiddens, dim=1) for hiddens in zip(*steps, strict=True)]
    if memory is None:
        return layer_states, state, None
    stacked = torch.stack(attentions, dim=1)
    return layer_states, state, stacked if step_mask is None else stacked * step_mask[..., None, None]
