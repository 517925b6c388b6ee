"""Incremental encoding: sentences read one after the other, each word attending to the sentence before."""

from __future__ import annotations

import torch

from .configuration_incremental_encoder import IncrementalEncoderConfig
from .knowledge_encoders import build_knowledge_encoder
from .lstm import ContextLSTM, stack_state
from .multi_source_attention import MultiSourceAttention
from .story_inputs import StoryInputs
from .story_reader import Reading, StoryEncoderOutput, StoryReader, stack_hidden_states


class IncrementalStoryEncoder(StoryReader):
    """Owner of word vectors, LSTM, attention and knowledge encoder; the decoder reads with the same ones."""

    def __init__(self, config: IncrementalEncoderConfig):
        super().__init__(config)
        self.lstm = ContextLSTM(config)
        self.attention = MultiSourceAttention(config)
        self.knowledge = build_knowledge_encoder(config)

    def encode(
        self, inputs: StoryInputs, output_attentions: bool | None = None, output_hidden_states: bool | None = None
    ) -> tuple[StoryEncoderOutput, torch.Tensor]:
        """The encoder's output, and the top layer's states of all steps [B, K, L + 1, D] for the supervision."""
        batch_size, num_sentences, _ = inputs.word_ids.shape
        state = self.lstm.initial_state(batch_size, like=self.embed_tokens.weight)
        triples = None
        if self.knowledge is not None:
            triples = self.knowledge.read_triples(inputs.triple_ids, inputs.triple_mask, self.embed_tokens)
        word_ids, step_mask = self.with_start(inputs)
        memory, last_states = None, None
        readings, triple_weights = [], []
        for sentence in range(num_sentences):
            word_mask = inputs.word_mask[:, sentence]
            reading = self.read(word_ids[:, sentence], state, memory, step_mask[:, sentence])
            word_states, graphs = reading.states[:, 1:], None
            if self.knowledge is not None and triples is not None:
                graphs = self.knowledge.graphs(triples, sentence, word_states)
                triple_weights.append(graphs.words.spread(graphs.weights))
            sentence_memory = self.attention.remember(word_states, graphs, word_mask)
            # An empty sentence leaves no trace: the next one attends to the last that had words.
            has_words = word_mask.any(dim=1)
            memory = sentence_memory if memory is None else memory.replaced_where(has_words, sentence_memory)
            last_states = (
                word_states if last_states is None else torch.where(has_words[:, None, None], word_states, last_states)
            )
            state = reading.state
            readings.append(reading)
        all_states = torch.stack([reading.states for reading in readings], dim=1)
        state_hidden, state_cell = stack_state(state)
        output = StoryEncoderOutput(
            last_hidden_state=last_states,
            state_hidden=state_hidden,
            state_cell=state_cell,
            memory_keys=memory.keys,
            memory_values=memory.values,
            memory_mask=memory.mask,
            hidden_states=stack_hidden_states(readings) if output_hidden_states else None,
            attentions=_stack_attentions(readings, triple_weights) if output_attentions else None,
            **self.remember_copies(all_states[:, :, 1:], inputs),
        )
        return output, all_states


def _stack_attentions(readings: list[Reading], triple_weights: list[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """Attention a source [B, K, L + 1, L], zero for the first sentence; then the triple weights."""
    batch_size, num_steps = readings[0].states.shape[:2]
    num_sources = 2 if triple_weights else 1
    nothing = readings[0].states.new_zeros(batch_size, num_steps, num_sources, num_steps - 1)
    attention = torch.stack([nothing if reading.attention is None else reading.attention for reading in readings], 1)
    sources = attention.unbind(dim=3)
    return (*sources, torch.stack(triple_weights, dim=1)) if triple_weights else sources
