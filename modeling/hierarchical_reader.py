"""HLSTM: an LSTM over the words of each sentence, one over the sentences, and attention to both levels."""

from __future__ import annotations

import torch

from .configuration_incremental_encoder import IncrementalEncoderConfig
from .hierarchical_attention import HierarchicalAttention
from .knowledge_encoders import build_knowledge_encoder
from .lstm import ContextLSTM, stack_state
from .stepwise_reading import read_step_by_step
from .story_inputs import StoryInputs
from .story_reader import Reading, StoryEncoderOutput, StoryReader, no_attentions, read_vectors
from .word_rows import Graphs


class HierarchicalStoryReader(StoryReader):
    """
    A hierarchical encoder with a decoder of its own:

        h_ij = LSTM(h_i,j-1, e(x_ij)), for each sentence i anew from zero, the start symbol first
        u_i  = LSTM(u_i-1, h_i,last)
        s_t  = LSTM(s_{t-1}, e(y_{t-1}), c(s_{t-1})), from the sentence level's last state, in all layers

    where c is [`HierarchicalAttention`] to words and sentences. The next word is predicted from s_t. A sentence
    without words is passed over on both levels. The encoder is not supervised.

    With knowledge the context has a second source, the graph vectors of *all* words of the story: the paper's decoder
    can do with those of the last sentence because its encoder has carried the others along, which this one has not.
    A graph is looked at, in contextual attention, with the word-level state at its word. Words are copied by their
    states on both levels, [h_ij ; u_i].
    """

    def __init__(self, config: IncrementalEncoderConfig):
        super().__init__(config, copy_size=2 * config.hidden_size)
        self.word_lstm = ContextLSTM(config, has_context=False)
        self.sentence_lstm = ContextLSTM(config, input_size=config.hidden_size, has_context=False)
        self.lstm = ContextLSTM(config)
        self.attention = HierarchicalAttention(config)
        self.knowledge = build_knowledge_encoder(config)

    def encode(
        self, inputs: StoryInputs, output_attentions: bool | None = None, output_hidden_states: bool | None = None
    ) -> tuple[StoryEncoderOutput, None]:
        words = self._read_words(inputs)
        sentences = self._read_sentences(words, inputs)
        states = words.states.view(*inputs.word_ids.shape[:2], -1, self.config.hidden_size)[:, :, 1:]  # [B, K, L, D]
        graphs = self._graphs(states, inputs)
        triple_weights = None if graphs is None else graphs.words.spread(graphs.weights).view_as(inputs.triple_mask)
        memory = self.attention.remember(states.flatten(1, 2), graphs, inputs.word_mask.flatten(1), sentences.states)
        state_hidden, state_cell = stack_state(sentences.state)
        both_levels = torch.cat((states, sentences.states.unsqueeze(2).expand_as(states)), dim=3)
        output = StoryEncoderOutput(
            last_hidden_state=states.flatten(1, 2),
            state_hidden=state_hidden,
            state_cell=state_cell,
            memory_keys=memory.keys,
            memory_values=memory.values,
            memory_mask=memory.mask,
            hidden_states=_hidden_states(words, sentences) if output_hidden_states else None,
            attentions=no_attentions(inputs, triple_weights, like=states) if output_attentions else None,
            **self.remember_copies(both_levels, inputs),
        )
        return output, None

    def _read_words(self, inputs: StoryInputs) -> Reading:
        """All sentences of all stories at once, [B * K, L + 1]: none waits for another."""
        word_ids, step_mask = (tensor.flatten(0, 1) for tensor in self.with_start(inputs))
        state = self.word_lstm.initial_state(word_ids.shape[0], like=self.embed_tokens.weight)
        return read_vectors(self.word_lstm, None, self.embed_tokens(word_ids), state, None, step_mask)

    def _read_sentences(self, words: Reading, inputs: StoryInputs) -> Reading:
        """The sentence level over the states [B, K, D] after the last word of each sentence."""
        batch_size, num_sentences, _ = inputs.word_ids.shape
        vectors = words.state[-1][0].view(batch_size, num_sentences, -1)
        state = self.sentence_lstm.initial_state(batch_size, like=vectors)
        has_words = inputs.word_mask.any(dim=2)
        # Empty sentences may stand anywhere, which only the plain loop can pass over.
        return Reading(vectors, *read_step_by_step(self.sentence_lstm, None, vectors, state, None, has_words))

    def _graphs(self, states: torch.Tensor, inputs: StoryInputs) -> Graphs | None:
        """The graphs of all words: to the knowledge encoder the story is one long sentence."""
        if self.knowledge is None:
            return None
        triple_ids, triple_mask = inputs.triple_ids.flatten(1, 2), inputs.triple_mask.flatten(1, 2)
        triples = self.knowledge.read_triples(triple_ids.unsqueeze(1), triple_mask.unsqueeze(1), self.embed_tokens)
        return self.knowledge.graphs(triples, 0, states.flatten(1, 2))


def _hidden_states(words: Reading, sentences: Reading) -> tuple[torch.Tensor, ...]:
    """Word vectors and word-level states [B, K, L + 1, ...], then sentence-level states [B, K, D] of each layer."""
    shape = sentences.states.shape[:2]
    return *(
        tensor.unflatten(0, shape) for tensor in (words.word_vectors, *words.layer_states)
    ), *sentences.layer_states
