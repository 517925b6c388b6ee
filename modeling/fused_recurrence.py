# Copyright 2026 The hf_storyend authors.
# SPDX-License-Identifier: Apache-2.0
"""
The fused recurrence: all steps of a sentence as one differentiable operation, with hand-written gradients.

It computes what `eager_recurrence` computes; a training step takes two thirds to three quarters of the time. Under
autograd every step works on padded rows and launches some twenty small operations between its products, twice as many
in the backward pass. Here:

- Rows are sorted by length and the steps of all rows are *packed* one behind the other: of the N rows of a packed
  tensor the first belong to step 0, the next to step 1 and so on, each step with the rows that are still reading. No
  step works on padding, and one `split` gives the views of all steps.
- Packed states have B + N rows: the initial states come first, so that step j reads block j and writes block j + 1.
- W_l is folded into the values of both attention sources, once a sentence instead of once a step.
- What backward can do for all steps at once (derivatives of the gates, gradients of weights, keys and values) is done
  outside its loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.autograd.function import once_differentiable

from .tensor_utils import is_eager_mode, is_unmodified, on_host

if TYPE_CHECKING:
    from .modeling_incremental_encoder import AttentionMemory, ContextLSTM, LSTMState, MultiSourceAttention


def can_fuse(lstm: ContextLSTM, attention: MultiSourceAttention | None, word_vectors: torch.Tensor) -> bool:
    """
    Guard of the fused recurrence. It reads weights and calls no module, so modules with hooks, adapters or quantised
    weights run eagerly; so does everything that is traced, and a single step, as in generation.
    """
    # Here, because that module imports this one.
    from .modeling_incremental_encoder import ContextLSTM, GateLinear, MultiSourceAttention

    if not is_eager_mode(word_vectors) or word_vectors.shape[1] == 1:
        return False
    parts = [(lstm, ContextLSTM), *((gates, GateLinear) for gates in lstm.step_gates)]
    if isinstance(attention, MultiSourceAttention):
        parts += [(attention, MultiSourceAttention), (attention.merge, nn.Linear)]
    elif attention is not None:
        return False
    return all(is_unmodified(module, expected) for module, expected in parts)


def fused_recurrence(
    lstm: ContextLSTM,
    attention: MultiSourceAttention | None,
    word_vectors: torch.Tensor,
    state: LSTMState,
    memory: AttentionMemory | None,
    step_mask: torch.Tensor | None,
) -> tuple[list[torch.Tensor], LSTMState, torch.Tensor | None]:
    """
    States of each layer [B, J, D], state after the last step and attention [B, J, S, L'], as `eager_recurrence` gives
    them, except that the attention passes no gradient. A row of `step_mask` [B, J], best of the host, must be true up
    to its end.
    """
    batch_size, num_steps, _ = word_vectors.shape
    packing = pack_steps(batch_size, num_steps, step_mask, word_vectors.device)
    word_gates = lstm.project_words(word_vectors.flatten(0, 1).index_select(0, packing.word_index))
    # Under autocast the projection chooses the dtype and all else follows it, as in a library's LSTM.
    dtype = word_gates.dtype
    sources: list[torch.Tensor | None] = [None] * 4
    if attention is not None and memory is not None:
        mask, keys, values = fold_memory(attention, memory)
        sources = [mask, keys.to(dtype), values.to(dtype), attention.merge.bias.to(dtype)]
    addends = [word_gates, *(gates.bias for gates in list(lstm.step_gates)[1:])]
    weights = [gates.weight for gates in lstm.step_gates]
    if memory is None:
        # Without a context, as in a first sentence, that half of the product falls away.
        weights[0] = weights[0][:, -lstm.hidden_size :].contiguous()
    layers = [
        tensor.to(dtype)
        for (hidden, cell), weight, addend in zip(state, weights, addends, strict=True)
        for tensor in (hidden, cell, weight, addend)
    ]
    dropout = lstm.dropout.p if lstm.dropout.training else 0.0
    attended, *outputs = FusedRecurrence.apply(packing, dropout, *sources, *layers)
    return outputs[0::3], list(zip(outputs[1::3], outputs[2::3], strict=True)), attended


def fold_memory(
    attention: MultiSourceAttention, memory: AttentionMemory
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """
    Mask [B, S, L], keys and values [B, S * L, D] of all sources one behind the other. With W_l applied to the values,
    the merged context is their weighted sum: W_l [c_h ; c_x] = sum alpha_h (W_lh h) + sum alpha_x (W_lx g).
    """
    of_states, of_graphs = attention.merge.weight.split((attention.hidden_size, attention.graph_size), dim=1)
    masks, keys, values = [memory.word_mask], [memory.state_keys], [memory.states @ of_states.T]
    if memory.graph_vectors is not None:
        masks.append(memory.graph_mask)
        keys.append(memory.knowledge_keys)
        values.append(memory.graph_vectors @ of_graphs.T)
    return torch.stack(masks, dim=1), torch.cat(keys, dim=1), torch.cat(values, dim=1)


@dataclass
class Packing:
    """Where the steps of B rows and J steps lie in packed tensors; rows in `order`, the longest first."""

    shape: tuple[int, int]  # B, J
    counts: list[int]  # rows of each step that has any; N in all
    order: torch.Tensor  # [B]
    word_index: torch.Tensor  # [N], position in [B * J] of each packed row
    before_index: torch.Tensor  # [N], row of the packed states that each packed row starts from
    state_index: torch.Tensor  # [B * J], row of the packed states after each step; behind a row's end, its last one

    @property
    def num_rows(self) -> int:
        return self.word_index.shape[0]

    @property
    def last_index(self) -> torch.Tensor:
        """[B], row of the packed states after the last step."""
        return self.state_index.view(self.shape)[:, -1]

    def steps(self, packed: torch.Tensor) -> list[torch.Tensor]:
        """Views of the steps of a packed tensor [N, ...]."""
        return list(packed.split(self.counts)) if self.counts else []

    def blocks(self, states: torch.Tensor) -> list[torch.Tensor]:
        """Views of packed states [B + N, ...]: the initial ones, then those after each step."""
        return list(states.split([self.shape[0], *self.counts]))

    def sort(self, rows: torch.Tensor) -> torch.Tensor:
        return rows.index_select(0, self.order)

    def unsort(self, rows: torch.Tensor) -> torch.Tensor:
        return rows.index_select(0, self.order.argsort())

    def unpack(self, packed: torch.Tensor) -> torch.Tensor:
        """[N, ...] -> [B, J, ...], zero where there was no step."""
        batch_size, num_steps = self.shape
        unpacked = packed.new_zeros(batch_size * num_steps, *packed.shape[1:])
        return unpacked.index_copy_(0, self.word_index, packed).unflatten(0, self.shape)


def pack_steps(batch_size: int, num_steps: int, step_mask: torch.Tensor | None, device: torch.device) -> Packing:
    """Sort rows by their number of steps: on the host, which has to know the rows of each step."""
    if step_mask is None:
        step_mask = torch.ones(batch_size, num_steps, dtype=torch.bool)
    (step_mask,) = on_host(step_mask)
    counts = [count for count in step_mask.sum(dim=0).tolist() if count]
    *starts, num_states = accumulate([batch_size, *counts], initial=0)  # blocks of packed states
    lengths = step_mask.sum(dim=1)
    order = lengths.argsort(descending=True, stable=True)
    positions = torch.arange(batch_size * num_steps).view(step_mask.shape).index_select(0, order)
    rows = torch.arange(num_states)
    num_steps_done = torch.arange(1, num_steps + 1).minimum(lengths.unsqueeze(1))
    state_index = torch.tensor(starts)[num_steps_done] + order.argsort().unsqueeze(1)
    # The empty slices are for a sentence without words in any row.
    word_index = torch.cat([rows[:0], *(positions[:count, step] for step, count in enumerate(counts))])
    before_index = torch.cat([rows[:0], *(rows[start:][:n] for start, n in zip(starts, counts, strict=False))])
    on_device = (tensor.to(device) for tensor in (order, word_index, before_index, state_index.flatten()))
    return Packing((batch_size, num_steps), counts, *on_device)


class FusedRecurrence(torch.autograd.Function):
    """
    All steps of a sentence. Arguments: packing and dropout; mask, keys, values and bias of the memory, or four times
    None; then hidden state, cell, weight and addend of each layer, the addend being the packed word gates [N, 4D] in
    the first and the bias [4D] in the others. Without a memory the first weight has no half for the context. Results:
    the attention or None; then states, last hidden state and last cell of each layer.
    """

    @staticmethod
    def forward(
        ctx: Any,
        packing: Packing,
        dropout: float,
        mask: torch.Tensor | None,
        keys: torch.Tensor | None,
        values: torch.Tensor | None,
        merge_bias: torch.Tensor | None,
        *layer_tensors: torch.Tensor,
    ) -> tuple[torch.Tensor | None, ...]:
        memory = None if mask is None else ForwardAttention(packing, mask, keys, values, merge_bias)
        layers = []
        for number, tensors in enumerate(_groups(layer_tensors, 4)):
            # Dropout is on what comes from the layer below.
            layers.append(ForwardLayer(packing, *tensors, dropout=dropout if number else 0.0))
        _forward_steps(packing, memory, layers)
        attention = None if memory is None else memory.attention(packing)
        ctx.packing, ctx.num_kept = packing, ForwardLayer.num_kept * len(layers)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(
            *([] if memory is None else [mask, memory.keys, memory.values, memory.weights, attention]),
            *(tensor for layer in layers for tensor in layer.kept()),
        )
        if attention is not None:
            ctx.mark_non_differentiable(attention)
        return attention, *(tensor for layer in layers for tensor in layer.results(packing))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, _: None, *gradients: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        packing, saved = ctx.packing, ctx.saved_tensors
        memory_tensors, layer_tensors = saved[: -ctx.num_kept], saved[-ctx.num_kept :]
        layers = [BackwardLayer(packing, *tensors) for tensors in _groups(layer_tensors, ForwardLayer.num_kept)]
        for layer, incoming in zip(layers, _groups(gradients, 3), strict=True):
            layer.receive(packing, *incoming)
        memory = BackwardAttention(packing, *memory_tensors) if memory_tensors else None
        _backward_steps(packing, memory, layers)
        sources = [None] * 3 if memory is None else memory.results(packing, queries=layers[-1].own_inputs)
        results = [layer.results(packing, has_bias=number > 0) for number, layer in enumerate(layers)]
        return None, None, None, *sources, *(tensor for layer in results for tensor in layer)


def _groups(tensors: tuple[torch.Tensor | None, ...], size: int) -> list[tuple[torch.Tensor | None, ...]]:
    return [tensors[start : start + size] for start in range(0, len(tensors), size)]


def _forward_steps(packing: Packing, memory: ForwardAttention | None, layers: list[ForwardLayer]) -> None:
    for step, count in enumerate(packing.counts):
        if memory is not None:
            memory.read(step, layers[-1].hidden_blocks[step][:count], layers[0].below_steps[step])
        layers[0].forward_step(step)
        for below, layer in zip(layers, layers[1:], strict=False):
            layer.feed(step, below.hidden_blocks[step + 1])
            layer.forward_step(step)


def _backward_steps(packing: Packing, memory: BackwardAttention | None, layers: list[BackwardLayer]) -> None:
    for step in reversed(range(len(packing.counts))):
        for below, layer in zip(layers[-2::-1], layers[:0:-1], strict=True):
            layer.pass_down(step, below.hidden_blocks[step + 1], layer.backward_step(step))
        by_context = layers[0].backward_step(step)
        if memory is not None:
            memory.context_steps[step].copy_(by_context)
            memory.backward_step(step, query=layers[-1].hidden_blocks[step][: packing.counts[step]])


class ForwardAttention:
    """Attention to the preceding sentence, step by step; rows in the order of the packing."""

    def __init__(
        self, packing: Packing, mask: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, bias: torch.Tensor
    ):
        num_sources, num_words = mask.shape[1:]
        self.mask, mask = mask, packing.sort(mask)
        has_words = mask[:, 0].any(dim=1, keepdim=True)
        self.keys = packing.sort(keys)
        # Where there is nothing to read, weights, whatever they are, then sum zeros.
        self.values = packing.sort(values).mul_(mask.flatten(1).unsqueeze(2))
        self.bias = bias * has_words
        # Half of the smallest number: added to a score it can't overflow, and its exponential is 0.
        padding = torch.zeros_like(mask, dtype=keys.dtype).masked_fill_(~mask, torch.finfo(keys.dtype).min / 2)
        self.padding = padding.flatten(1).unsqueeze(2)
        self.weights = keys.new_empty(packing.num_rows, num_sources, num_words)
        self.weight_steps = packing.steps(self.weights)

    def read(self, step: int, query: torch.Tensor, context: torch.Tensor) -> None:
        """Attend with a query [n, D] and fill in the context [n, D]."""
        count, weights = query.shape[0], self.weight_steps[step]
        # A transposed row, not a column: with these strides bmm finds its fast kernel (5x on CPU).
        scores = torch.baddbmm(self.padding[:count], self.keys[:count], query.unsqueeze(1).mT)
        torch.softmax(scores.view_as(weights), dim=-1, out=weights)
        merged = torch.bmm(weights.flatten(1).unsqueeze(1), self.values[:count])
        torch.add(merged.squeeze(1), self.bias[:count], out=context)

    def attention(self, packing: Packing) -> torch.Tensor:
        """Weights of all steps [B, J, S, L], zero also in rows without any word."""
        return packing.unpack(self.weights).mul_(self.mask[:, None])


class ForwardLayer:
    """One layer on its way through a sentence: `[input ; hidden]`, gates and states of all steps, packed."""

    num_kept = 5

    def __init__(
        self,
        packing: Packing,
        hidden: torch.Tensor,
        cell: torch.Tensor,
        weight: torch.Tensor,
        addend: torch.Tensor,
        *,
        dropout: float,
    ):
        num_rows, (self.batch_size, size) = packing.num_rows, hidden.shape
        self.weight = weight
        self.inputs = hidden.new_empty(num_rows, self.weight.shape[1])
        self.gates = hidden.new_empty(num_rows, 4 * size)
        self.hidden = torch.cat((packing.sort(hidden), hidden.new_empty(num_rows, size)))
        self.cells = torch.cat((packing.sort(cell), cell.new_empty(num_rows, size)))
        self.dropout_mask = _dropout_mask(hidden, num_rows, dropout)
        self.dropout_steps = None if self.dropout_mask is None else packing.steps(self.dropout_mask)
        self.addend_steps = packing.steps(addend.expand(num_rows, -1))
        self.input_steps = packing.steps(self.inputs)
        self.below_steps, self.own_steps = packing.steps(self.inputs[:, :size]), packing.steps(self.inputs[:, -size:])
        self.hidden_blocks, self.cell_blocks = packing.blocks(self.hidden), packing.blocks(self.cells)
        self.gate_steps = packing.steps(self.gates)
        self.gate_parts = [packing.steps(part) for part in self.gates.chunk(4, dim=1)]
        self.input_and_forget = packing.steps(self.gates[:, : 2 * size])

    def feed(self, step: int, hidden: torch.Tensor) -> None:
        """Put the hidden state of the layer below in place."""
        if self.dropout_steps is None:
            self.below_steps[step].copy_(hidden)
        else:
            torch.mul(hidden, self.dropout_steps[step], out=self.below_steps[step])

    def forward_step(self, step: int) -> None:
        """One step, its input being in place."""
        gates = self.gate_steps[step]
        self.own_steps[step].copy_(self.hidden_blocks[step][: gates.shape[0]])
        self._multiply(step)
        input_gate, forget_gate, candidate, output_gate = (part[step] for part in self.gate_parts)
        self.input_and_forget[step].sigmoid_()
        candidate.tanh_()
        output_gate.sigmoid_()
        cell = torch.mul(forget_gate, self.cell_blocks[step][: gates.shape[0]], out=self.cell_blocks[step + 1])
        cell.addcmul_(input_gate, candidate)
        torch.tanh(cell, out=self.hidden_blocks[step + 1]).mul_(output_gate)

    def _multiply(self, step: int) -> None:
        """Gate inputs of a step: weight @ [input ; hidden] + addend."""
        addend, inputs, gates = self.addend_steps[step], self.input_steps[step], self.gate_steps[step]
        if gates.shape[0] == 1 < self.batch_size:
            # The last row of a batch: the summation order of a matrix-vector product depends on memory alignment, so
            # that a reloaded model would differ in the last bit. Two rows make it a matrix product.
            torch.add(addend, (inputs.repeat(2, 1) @ self.weight.T)[:1], out=gates)
        else:
            torch.addmm(addend, inputs, self.weight.T, out=gates)

    def kept(self) -> tuple[torch.Tensor | None, ...]:
        """What backward needs, `num_kept` in number; hidden states are in the inputs."""
        return self.weight, self.inputs, self.gates, self.cells, self.dropout_mask

    def results(self, packing: Packing) -> tuple[torch.Tensor, ...]:
        """States of all steps [B, J, D], last hidden state and last cell [B, D]."""
        states = self.hidden.index_select(0, packing.state_index).unflatten(0, packing.shape)
        last = packing.last_index
        return states, self.hidden.index_select(0, last), self.cells.index_select(0, last)


def _dropout_mask(like: torch.Tensor, num_rows: int, dropout: float) -> torch.Tensor | None:
    if dropout == 0.0:
        return None
    return like.new_empty(num_rows, like.shape[1]).bernoulli_(1 - dropout).div_(1 - dropout)


class BackwardAttention:
    """What comes back to the sentence before, step by step."""

    def __init__(
        self,
        packing: Packing,
        mask: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        weights: torch.Tensor,
        attention: torch.Tensor,
    ):
        self.mask, self.keys, self.values, self.attention = mask, keys, values, attention
        self.contexts = keys.new_empty(packing.num_rows, keys.shape[2])
        self.scores = torch.empty_like(weights)
        self.context_steps, self.score_steps = packing.steps(self.contexts), packing.steps(self.scores)
        self.weight_steps = packing.steps(weights)

    def backward_step(self, step: int, query: torch.Tensor) -> None:
        """From the gradient of a step's context to that of its scores, and on to that of its query [n, D]."""
        count, weights, scores = query.shape[0], self.weight_steps[step], self.score_steps[step]
        # Transposed as in the forward pass.
        by_weights = torch.bmm(self.values[:count], self.context_steps[step].unsqueeze(1).mT)
        torch.mul(by_weights.view_as(weights), weights, out=scores)
        scores.sub_(weights * scores.sum(dim=-1, keepdim=True))
        query.unsqueeze(1).baddbmm_(scores.flatten(1).unsqueeze(1), self.keys[:count])

    def results(self, packing: Packing, queries: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Gradients of keys and values [B, S * L, D] and of the bias [D], each one product for all steps."""
        contexts = packing.unpack(self.contexts)
        keys = packing.unpack(self.scores).flatten(2).mT @ packing.unpack(queries)
        values = self.attention.flatten(2).mT @ contexts
        has_words = self.mask[:, 0].any(dim=1).to(contexts.dtype)
        return keys, values, has_words @ contexts.sum(dim=1)


class BackwardLayer:
    """
    Gradients of one layer on the way back. Those of hidden states add up in `hidden`; those of the gates take the
    place of the gates' derivatives, step by step.
    """

    def __init__(
        self,
        packing: Packing,
        weight: torch.Tensor,
        inputs: torch.Tensor,
        gates: torch.Tensor,
        cells: torch.Tensor,
        dropout_mask: torch.Tensor | None,
    ):
        batch_size, num_rows, size = packing.shape[0], packing.num_rows, cells.shape[1]
        self.inputs, self.own_inputs = inputs, inputs[:, -size:]
        self.weight = weight
        self.hidden, self.cell = torch.zeros_like(cells), cells.new_zeros(batch_size, size)
        self.gates, self.output_to_cell = torch.empty_like(gates), cells.new_empty(num_rows, size)
        self._differentiate(gates, before=cells.index_select(0, packing.before_index), after=cells[batch_size:])
        self.dropout_steps = None if dropout_mask is None else packing.steps(dropout_mask)
        self.hidden_blocks, self.gate_steps = packing.blocks(self.hidden), packing.steps(self.gates)
        self.output_to_cell_steps = packing.steps(self.output_to_cell)
        self.cell_to_gates = packing.steps(self.gates.view(num_rows, 4, size)[:, :3])
        self.hidden_to_output = packing.steps(self.gates[:, 3 * size :])
        self.forget_steps = packing.steps(gates[:, size : 2 * size])

    def _differentiate(self, gates: torch.Tensor, before: torch.Tensor, after: torch.Tensor) -> None:
        """
        Derivatives of the cell by what goes into three gates, of the hidden state by what goes into the fourth, and of
        the hidden state by the cell. They need nothing that comes back, so that all steps are done at once, and a step
        of the loop is left with four operations instead of eleven.
        """
        input_gate, forget_gate, candidate, output_gate = gates.chunk(4, dim=1)
        by_input, by_forget, by_candidate, by_output = self.gates.chunk(4, dim=1)
        squashed = after.tanh()
        torch.mul(candidate, input_gate * (1 - input_gate), out=by_input)
        torch.mul(before, forget_gate * (1 - forget_gate), out=by_forget)
        torch.mul(input_gate, 1 - candidate.square(), out=by_candidate)
        torch.mul(squashed, output_gate * (1 - output_gate), out=by_output)
        torch.mul(output_gate, 1 - squashed.square(), out=self.output_to_cell)

    def receive(
        self,
        packing: Packing,
        states: torch.Tensor | None,
        last_hidden: torch.Tensor | None,
        last_cell: torch.Tensor | None,
    ) -> None:
        """Take up the gradients of what the layer returned; None where nothing came of it."""
        if states is not None:
            self.hidden.index_add_(0, packing.state_index, states.flatten(0, 1))
        if last_hidden is not None:
            self.hidden.index_add_(0, packing.last_index, last_hidden)
        if last_cell is not None:
            self.cell = packing.sort(last_cell)

    def backward_step(self, step: int) -> torch.Tensor:
        """
        One step back, once all that came of its hidden state is known: to its gates and the state before it. Returns
        the gradient of what came from below [n, D].
        """
        gates, hidden = self.gate_steps[step], self.hidden_blocks[step + 1]
        count = gates.shape[0]
        cell = self.cell[:count].addcmul_(hidden, self.output_to_cell_steps[step])
        self.cell_to_gates[step].mul_(cell.unsqueeze(1))
        self.hidden_to_output[step].mul_(hidden)
        cell.mul_(self.forget_steps[step])
        by_inputs = gates @ self.weight
        self.hidden_blocks[step][:count].add_(by_inputs[:, -hidden.shape[1] :])
        return by_inputs[:, : hidden.shape[1]]

    def pass_down(self, step: int, hidden: torch.Tensor, by_hidden: torch.Tensor) -> None:
        """Add to the gradient of the hidden state of the layer below."""
        if self.dropout_steps is None:
            hidden.add_(by_hidden)
        else:
            hidden.addcmul_(by_hidden, self.dropout_steps[step])

    def results(self, packing: Packing, has_bias: bool) -> tuple[torch.Tensor, ...]:
        """Gradients of the first state, of the weight (one product for all steps) and of the addend."""
        weight = self.gates.T @ self.inputs
        addend = self.gates.sum(dim=0) if has_bias else self.gates
        return packing.unsort(self.hidden_blocks[0]), packing.unsort(self.cell), weight, addend
