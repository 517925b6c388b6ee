"""Incremental encoding: sentences read one after the other, each word attending to the sentence before."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional
from transformers.utils import ModelOutput

from .configuration_incremental_encoder import IncrementalEncoderConfig
from .fused_reading import can_read_fused, read_fused
from .knowledge_encoders import build_knowledge_encoder
from .lstm import ContextLSTM, LSTMState, keep_state_where, stack_state, unstack_state
from .multi_source_attention import MultiSourceAttention, SentenceMemory
from .story_inputs import StoryInputs, prepare_story_inputs


@dataclass
class StoryEncoderOutput(ModelOutput):
    """
    All that the decoder needs of a story; every tensor has the batch first, so that `generate()` can expand it.

    Args:
        last_hidden_state (`torch.Tensor` of shape `[B, L, D]`):
            Hidden states at the words of the last sentence.
        state_hidden, state_cell (`torch.Tensor` of shape `[B, layers, D]`):
            LSTM state after the last word: where the ending starts from.
        memory_keys, memory_values (`torch.Tensor` of shape `[B, S * L, D]`), memory_mask (`[B, L]`):
            The last sentence as the decoder attends to it; S is 2 with knowledge, else 1.
        hidden_states (`tuple` of `[B, K, L + 1, E]` and then, for each layer, `[B, K, L + 1, D]`, *optional*):
            Word vectors and states of every step; step 0 reads the start symbol, step j word j.
        attentions (`tuple`, *optional*):
            State attention and knowledge attention, both `[B, K, L + 1, L]`: what each step gave to each word of
            the sentence before it (zero in the first); then the weights `[B, K, L, N]` of the triples inside each
            word's graph. Without knowledge, only the first. They are for looking at and may carry no gradient.
    """

    last_hidden_state: torch.Tensor | None = None
    state_hidden: torch.Tensor | None = None
    state_cell: torch.Tensor | None = None
    memory_keys: torch.Tensor | None = None
    memory_values: torch.Tensor | None = None
    memory_mask: torch.Tensor | None = None
    hidden_states: tuple[torch.Tensor, ...] | None = None
    attentions: tuple[torch.Tensor, ...] | None = None

    @property
    def state(self) -> LSTMState:
        return unstack_state(self.state_hidden, self.state_cell)

    @property
    def memory(self) -> SentenceMemory:
        return SentenceMemory(self.memory_keys, self.memory_values, self.memory_mask)


@dataclass
class Reading:
    """A sentence of J steps, read."""

    word_vectors: torch.Tensor  # [B, J, E]
    layer_states: list[torch.Tensor]  # a layer: [B, J, D]
    state: LSTMState
    # [B, J, S, L'], for looking at: it may pass no gradient. None if there was no sentence to attend to.
    attention: torch.Tensor | None

    @property
    def states(self) -> torch.Tensor:
        """States of the top layer, [B, J, D]."""
        return self.layer_states[-1]


class IncrementalStoryEncoder(nn.Module):
    """Owner of word vectors, LSTM, attention and knowledge encoder; the decoder reads with the same ones."""

    # generate() asks the encoder for it.
    main_input_name = "input_ids"

    def __init__(self, config: IncrementalEncoderConfig):
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocab_size, config.embedding_size)
        self.lstm = ContextLSTM(config)
        self.attention = MultiSourceAttention(config)
        self.knowledge = build_knowledge_encoder(config)

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        triple_ids: torch.Tensor | None = None,
        triple_mask: torch.Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
    ) -> StoryEncoderOutput | tuple:
        inputs = prepare_story_inputs(self.config, input_ids, attention_mask, triple_ids, triple_mask)
        output, _ = self.encode(inputs, output_attentions, output_hidden_states)
        return output if return_dict is not False else output.to_tuple()

    def encode(
        self, inputs: StoryInputs, output_attentions: bool | None = None, output_hidden_states: bool | None = None
    ) -> tuple[StoryEncoderOutput, torch.Tensor]:
        """The encoder's output, and the top layer's states of all steps [B, K, L + 1, D] for the supervision."""
        batch_size, num_sentences, _ = inputs.word_ids.shape
        state = self.lstm.initial_state(batch_size, like=self.embed_tokens.weight)
        triples = self.knowledge and self.knowledge.read_triples(
            inputs.triple_ids, inputs.triple_mask, self.embed_tokens
        )
        memory, last_states = None, None
        readings, triple_weights = [], []
        for sentence in range(num_sentences):
            word_mask = inputs.word_mask[:, sentence]
            reading = self._read_sentence(inputs.word_ids[:, sentence], word_mask, state, memory)
            word_states, graph_vectors = reading.states[:, 1:], None
            if self.knowledge is not None:
                graph_vectors, weights = self.knowledge(triples, sentence, word_states)
                triple_weights.append(weights)
            sentence_memory = self.attention.remember(word_states, graph_vectors, word_mask)
            # An empty sentence leaves no trace: the next one attends to the last that had words.
            has_words = word_mask.any(dim=1)
            memory = sentence_memory if memory is None else memory.replaced_where(has_words, sentence_memory)
            last_states = (
                word_states if last_states is None else torch.where(has_words[:, None, None], word_states, last_states)
            )
            state = reading.state
            readings.append(reading)
        state_hidden, state_cell = stack_state(state)
        output = StoryEncoderOutput(
            last_hidden_state=last_states,
            state_hidden=state_hidden,
            state_cell=state_cell,
            memory_keys=memory.keys,
            memory_values=memory.values,
            memory_mask=memory.mask,
            hidden_states=_stack_hidden_states(readings) if output_hidden_states else None,
            attentions=_stack_attentions(readings, triple_weights) if output_attentions else None,
        )
        return output, torch.stack([reading.states for reading in readings], dim=1)

    def _read_sentence(
        self, word_ids: torch.Tensor, word_mask: torch.Tensor, state: LSTMState, memory: SentenceMemory | None
    ) -> Reading:
        """Read the start symbol, then the words; a sentence without words is passed over, start symbol included."""
        word_ids = functional.pad(word_ids, (1, 0), value=self.config.bos_token_id)
        step_mask = torch.cat((word_mask.any(dim=1, keepdim=True), word_mask), dim=1)
        return self.read(word_ids, state, memory, step_mask)

    def read(
        self,
        word_ids: torch.Tensor,
        state: LSTMState,
        memory: SentenceMemory | None,
        step_mask: torch.Tensor | None = None,
    ) -> Reading:
        """Read word_ids [B, J] from `state` on, attending to `memory`; steps not in `step_mask` [B, J] do nothing."""
        word_vectors = self.embed_tokens(word_ids)
        recurrence = read_fused if can_read_fused(self.lstm, word_ids, step_mask) else read_step_by_step
        return Reading(word_vectors, *recurrence(self.lstm, self.attention, word_vectors, state, memory, step_mask))


def read_step_by_step(
    lstm: ContextLSTM,
    attention: MultiSourceAttention,
    word_vectors: torch.Tensor,
    state: LSTMState,
    memory: SentenceMemory | None,
    step_mask: torch.Tensor | None,
) -> tuple[list[torch.Tensor], LSTMState, torch.Tensor | None]:
    """States of each layer [B, J, D], state after the last step and attention [B, J, S, L'], by a plain loop."""
    word_gates = lstm.project_words(word_vectors)
    steps, attentions = [], []
    for step in range(word_vectors.shape[1]):
        top_hidden = state[-1][0]
        context, weights = attention(top_hidden, memory)
        new_state = lstm(word_gates[:, step], context, state)
        state = new_state if step_mask is None else keep_state_where(step_mask[:, step], new_state, state)
        steps.append([hidden for hidden, _ in state])
        attentions.append(weights)
    layer_states = [torch.stack(hiddens, dim=1) for hiddens in zip(*steps, strict=True)]
    if memory is None:
        return layer_states, state, None
    stacked = torch.stack(attentions, dim=1)
    return layer_states, state, stacked if step_mask is None else stacked * step_mask[..., None, None]


def _stack_hidden_states(readings: list[Reading]) -> tuple[torch.Tensor, ...]:
    word_vectors = torch.stack([reading.word_vectors for reading in readings], dim=1)
    layers = zip(*(reading.layer_states for reading in readings), strict=True)
    return word_vectors, *(torch.stack(states, dim=1) for states in layers)


def _stack_attentions(readings: list[Reading], triple_weights: list[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """Attention a source [B, K, L + 1, L], zero for the first sentence; then the triple weights."""
    batch_size, num_steps = readings[0].states.shape[:2]
    num_sources = 2 if triple_weights else 1
    nothing = readings[0].states.new_zeros(batch_size, num_steps, num_sources, num_steps - 1)
    attention = torch.stack([nothing if reading.attention is None else reading.attention for reading in readings], 1)
    sources = attention.unbind(dim=3)
    return (*sources, torch.stack(triple_weights, dim=1)) if triple_weights else sources
