"""
Reading one story without gradients, as `generate()` does for one who wants an ending now.

With one row every product is bound by reading its weight, and what is launched between the products decides the rest:
here a step has no rows to sort, pack, mask or keep for a way back.
"""

from __future__ import annotations

import torch

from .cpu_products import add_vector_product
from .fused_reading import has_plain_parts
from .lstm import ContextLSTM, LSTMState
from .multi_source_attention import MultiSourceAttention, SentenceMemory
from .tensor_values import has_values


def can_read_single(lstm: ContextLSTM, attention: MultiSourceAttention | None, word_vectors: torch.Tensor) -> bool:
    """Whether `read_single` may take a reading. Elsewhere than on a CPU, operations are not what one row waits for."""
    return (
        word_vectors.shape[0] == 1
        and word_vectors.device.type == "cpu"
        and has_values(word_vectors)
        and not torch.is_grad_enabled()
        and not torch.is_autocast_enabled("cpu")
        and not lstm.dropout.training
        and has_plain_parts(lstm, attention)
    )


def read_single(
    lstm: ContextLSTM,
    attention: MultiSourceAttention | None,
    word_vectors: torch.Tensor,
    state: LSTMState,
    memory: SentenceMemory | None,
    step_mask: torch.Tensor | None,
) -> tuple[list[torch.Tensor], LSTMState, torch.Tensor | None]:
    """What `read_step_by_step` gives, for one row: a row of `step_mask` must be true up to its end."""
    num_steps = word_vectors.shape[1]
    num_words = num_steps if step_mask is None else int(step_mask.sum())
    look = None
    if attention is not None and memory is not None and memory.has_words.item():
        look = SingleMemory(attention, memory)
    vectors, steps = [(hidden[0], cell[0]) for hidden, cell in state], []
    for word_gates in lstm.project_words(word_vectors[0, :num_words]).unbind():
        context = None if look is None else look(vectors[-1][0])
        vectors = _advance(lstm, word_gates, context, vectors)
        steps.append([hidden for hidden, _ in vectors])
    # Behind the last word the state stays as it is.
    steps += [[hidden for hidden, _ in vectors]] * (num_steps - num_words)
    layer_states = [torch.stack(hiddens).unsqueeze(0) for hiddens in zip(*steps, strict=True)]
    new_state = [(hidden.unsqueeze(0), cell.unsqueeze(0)) for hidden, cell in vectors]
    return layer_states, new_state, None if memory is None else _attention(look, memory, num_steps)


def _advance(lstm: ContextLSTM, word_gates: torch.Tensor, context: torch.Tensor | None, state: LSTMState) -> LSTMState:
    """One step, as `ContextLSTM.forward` does it: word_gates [4D], context [D], hidden states and cells [D]."""
    new_state: LSTMState = []
    below, addend = context, word_gates
    for gates, (hidden, cell) in zip(lstm.step_gates, state, strict=True):
        # Without a context, its half of the product falls away.
        weight = gates.weight if below is not None else gates.weight[:, -lstm.hidden_size :]
        inputs = hidden if below is None else torch.cat((below, hidden))
        addend = addend if gates.bias is None else gates.bias
        below, cell = lstm.open_gates(add_vector_product(addend, weight, inputs), cell)
        new_state.append((below, cell))
    return new_state


class SingleMemory:
    """The sentence before, as one row attends to it; `weights` are those of all steps so far."""

    def __init__(self, attention: MultiSourceAttention, memory: SentenceMemory):
        mask = memory.mask[0]
        self.shape = mask.shape  # S, L
        self.keys = memory.keys[0]
        # As in `ForwardMemory`: what is not there has no weight beside what is, and adds nothing where all is missing.
        self.values = (memory.values[0] * mask.view(-1, 1)).T
        lowest = torch.finfo(self.keys.dtype).min / 2
        self.padding = torch.zeros_like(self.keys[:, 0]).masked_fill_(~mask.flatten(), lowest)
        self.bias = attention.merge.bias
        self.weights: list[torch.Tensor] = []

    def __call__(self, query: torch.Tensor) -> torch.Tensor:
        """Context [D] for a query [D]."""
        scores = torch.addmv(self.padding, self.keys, query)
        self.weights.append(scores.view(self.shape).softmax(dim=-1))
        return torch.addmv(self.bias, self.values, self.weights[-1].flatten())


def _attention(look: SingleMemory | None, memory: SentenceMemory, num_steps: int) -> torch.Tensor:
    """Weights of all steps [1, J, S, L], zero at what is not there and behind the last word."""
    attention = memory.keys.new_zeros(num_steps, *memory.mask.shape[1:])
    if look is not None and look.weights:
        torch.mul(torch.stack(look.weights), memory.mask, out=attention[: len(look.weights)])
    return attention.unsqueeze(0)
