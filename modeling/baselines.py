# Copyright 2026 The hf_storyend authors.
# SPDX-License-Identifier: Apache-2.0
"""The paper's baselines: Seq2Seq, and HLSTM with or without copying and multi-source attention."""

from __future__ import annotations

import torch
from torch import nn

from .configuration_incremental_encoder import IncrementalEncoderConfig
from .modeling_incremental_encoder import (
    AttentionMemory,
    ContextLSTM,
    MultiSourceAttention,
    RecurrenceOutput,
    StoryEncoder,
    StoryEncoderOutput,
    build_attentional,
    build_knowledge_encoder,
    eager_recurrence,
    stack_hidden_states,
)
from .story_inputs import StoryInputs
from .tensor_utils import DistinctTriples, masked_softmax


class SequenceEncoder(StoryEncoder):
    """
    Seq2Seq: one LSTM over all words of the story, a start symbol before each sentence, and another one for the ending,
    which starts from the first one's last state:

        s_t  = LSTM(s_{t-1}, e(y_{t-1}), c(s_{t-1}))
        c(s) = W_l sum_m alpha_m h_m + b_l,   alpha = softmax over all words m of  s . W_s h_m

    with the "general" score of Luong, Pham and Manning (EMNLP 2015). The LSTM is fed the context vector of the step
    before, as in the paper's decoder (its Eq. 4). The encoder is not supervised.
    """

    def __init__(self, config: IncrementalEncoderConfig):
        if config.knowledge is not None:
            raise ValueError(
                f"`story_encoder='sequence'` reads no triples: `knowledge` must be None; got {config.knowledge!r}."
            )
        super().__init__(config)
        self.story_lstm = ContextLSTM(config, has_context=False)
        self.lstm = ContextLSTM(config)
        self.attention = MultiSourceAttention(config)
        self.attentional = build_attentional(config)

    def encode(
        self, inputs: StoryInputs, output_attentions: bool | None = None, output_hidden_states: bool | None = None
    ) -> tuple[StoryEncoderOutput, None]:
        word_ids, step_mask = self.prepend_start(inputs)
        word_vectors = self.embed_tokens(word_ids.flatten(1)).unflatten(1, word_ids.shape[1:])
        state = self.initial_state(self.story_lstm, word_ids)
        sentences: list[RecurrenceOutput] = []
        # One sequence, read in pieces because padding lies between them.
        for vectors, mask in zip(word_vectors.unbind(1), step_mask.unbind(1), strict=True):
            sentences.append(self.recur(self.story_lstm, None, vectors, state, None, mask))
            state = sentences[-1].state
        states = torch.stack([sentence.states[:, 1:] for sentence in sentences], dim=1)  # [B, K, L, D]
        encoded = StoryEncoderOutput.from_parts(
            state,
            self.attention.project_memory(states.flatten(1, 2), inputs.word_mask.flatten(1)),
            self.project_pointers(states, inputs),
            hidden_states=stack_hidden_states(sentences) if output_hidden_states else None,
            attentions=_no_attentions(inputs, None, like=states) if output_attentions else None,
        )
        return encoded, None


class HierarchicalEncoder(StoryEncoder):
    """
    HLSTM: an LSTM over the words of each sentence, one over the sentences, and a decoder of its own:

        h_ij = LSTM(h_i,j-1, e(x_ij)), for each sentence i anew from zero, the start symbol first
        u_i  = LSTM(u_i-1, h_i,last)
        s_t  = LSTM(s_{t-1}, e(y_{t-1}), c(s_{t-1})), from the sentence level's last state, in all layers

    where c is [`HierarchicalAttention`] to words and sentences. A sentence without words is skipped on both levels.
    The encoder is not supervised.

    With knowledge the context has a second source, the graph vectors of *all* words of the story: the paper's decoder
    can do with those of the last sentence because its encoder has carried the others along, which this one has not.
    Contextual attention scores a graph with the word-level state at its word. Words are copied by their states on
    both levels, [h_ij ; u_i].
    """

    def __init__(self, config: IncrementalEncoderConfig):
        super().__init__(config, copy_size=2 * config.hidden_size)
        self.word_lstm = ContextLSTM(config, has_context=False)
        self.sentence_lstm = ContextLSTM(config, input_size=config.hidden_size, has_context=False)
        self.lstm = ContextLSTM(config)
        self.attention = HierarchicalAttention(config)
        self.knowledge = build_knowledge_encoder(config)
        self.attentional = build_attentional(config)

    def encode(
        self, inputs: StoryInputs, output_attentions: bool | None = None, output_hidden_states: bool | None = None
    ) -> tuple[StoryEncoderOutput, None]:
        words = self._encode_words(inputs)
        sentences = self._encode_sentences(words, inputs)
        states = words.states.view(*inputs.word_ids.shape[:2], -1, self.config.hidden_size)[:, :, 1:]  # [B, K, L, D]
        graph_vectors, triple_attention = self._graphs(states, inputs)
        memory = self.attention.project_memory(
            states.flatten(1, 2),
            inputs.word_mask.flatten(1),
            graph_vectors,
            inputs.triple_mask.any(dim=-1).flatten(1),
            sentences.states,
        )
        both_levels = torch.cat((states, sentences.states.unsqueeze(2).expand_as(states)), dim=3)
        encoded = StoryEncoderOutput.from_parts(
            sentences.state,
            memory,
            self.project_pointers(both_levels, inputs),
            hidden_states=_hidden_states(words, sentences) if output_hidden_states else None,
            attentions=_no_attentions(inputs, triple_attention, like=states) if output_attentions else None,
        )
        return encoded, None

    def _encode_words(self, inputs: StoryInputs) -> RecurrenceOutput:
        """All sentences of all stories at once, [B * K, L + 1]: none waits for another."""
        word_ids, step_mask = (tensor.flatten(0, 1) for tensor in self.prepend_start(inputs))
        state = self.initial_state(self.word_lstm, word_ids)
        return self.recur(self.word_lstm, None, self.embed_tokens(word_ids), state, None, step_mask)

    def _encode_sentences(self, words: RecurrenceOutput, inputs: StoryInputs) -> RecurrenceOutput:
        """The sentence level over the states [B, K, D] after the last word of each sentence."""
        batch_size, num_sentences, _ = inputs.word_ids.shape
        vectors = words.state[-1][0].view(batch_size, num_sentences, -1)
        state = self.sentence_lstm.initial_state(batch_size, like=vectors)
        has_words = inputs.word_mask.any(dim=2)
        # Empty sentences may lie anywhere, which only the eager loop can skip.
        return RecurrenceOutput(vectors, *eager_recurrence(self.sentence_lstm, None, vectors, state, None, has_words))

    def _graphs(self, states: torch.Tensor, inputs: StoryInputs) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        """Graph vectors [B, K * L, G] and triple attention [B, K, L, N] of all words, as if of one long sentence."""
        if self.knowledge is None:
            return None, None
        ids, index, count = inputs.triples
        distinct = DistinctTriples(ids, index.flatten(1, 2).unsqueeze(1), count)
        triple_mask, has_triples = inputs.triple_mask.flatten(1, 2), inputs.host.has_triples.flatten(1, 2)
        triples = self.knowledge.encode_story(
            distinct, triple_mask.unsqueeze(1), has_triples.unsqueeze(1), self.embed_tokens
        )
        graph_vectors, triple_attention = self.knowledge(triples, 0, states.flatten(1, 2))
        return graph_vectors, triple_attention.view_as(inputs.triple_mask)


class HierarchicalAttention(nn.Module):
    """
    Attention to all K sentences of a story on both levels, for a query q:

        gamma_i  = softmax over i of  q . W_u u_i            sentences with words
        alpha_ij = softmax over j of  q . W_s h_ij           words of sentence i
        beta_ij  = softmax over j of  q . W_k g_ij           graphs of those words, with knowledge
        c = W_l [sum_ij gamma_i alpha_ij h_ij ; sum_ij gamma_i beta_ij g_ij] + b_l + W_v sum_i gamma_i u_i

    with u_i the states of the sentence level, h_ij those of the word level and g_ij graph vectors. Words and graphs
    are scored and merged by multi-source attention.
    """

    def __init__(self, config: IncrementalEncoderConfig):
        super().__init__()
        self.words = MultiSourceAttention(config)
        self.sentence_scorer = nn.Linear(config.hidden_size, config.hidden_size, bias=False)
        self.sentence_merge = nn.Linear(config.hidden_size, config.hidden_size, bias=False)

    def project_memory(
        self,
        states: torch.Tensor,
        word_mask: torch.Tensor,
        graph_vectors: torch.Tensor | None,
        has_triples: torch.Tensor,
        sentence_states: torch.Tensor,
    ) -> AttentionMemory:
        """Memory of a story of K * L words, and of its sentence states [B, K, D]."""
        memory = self.words.project_memory(states, word_mask, graph_vectors, has_triples)
        memory.sentence_states = sentence_states
        memory.sentence_keys = self.sentence_scorer(sentence_states) * self.words.score_scale
        return memory

    def forward(self, queries: torch.Tensor, memory: AttentionMemory) -> tuple[torch.Tensor, torch.Tensor]:
        """Contexts [B, J, D] for queries [B, J, D], and gamma * alpha and gamma * beta, [B, J, S, K * L]."""
        num_sentences = memory.sentence_states.shape[1]
        has_words = memory.word_mask.unflatten(1, (num_sentences, -1)).any(dim=2)  # [B, K]
        gamma = masked_softmax(queries @ memory.sentence_keys.mT, has_words[:, None])  # [B, J, K]
        state_scores, knowledge_scores = self.words.score(queries, memory)
        state_attention = _attend_within(state_scores, memory.word_mask, gamma)
        knowledge_attention = None
        if knowledge_scores is not None:
            knowledge_attention = _attend_within(knowledge_scores, memory.graph_mask, gamma)
        context = self.words.read(state_attention, knowledge_attention, memory)
        context = context + self.sentence_merge(gamma @ memory.sentence_states)
        sources = [state_attention] if knowledge_attention is None else [state_attention, knowledge_attention]
        return context, torch.stack(sources, dim=2)


def _attend_within(scores: torch.Tensor, mask: torch.Tensor, gamma: torch.Tensor) -> torch.Tensor:
    """Attention [B, J, K * L] to the words of each sentence, times that to the sentence, gamma [B, J, K]."""
    shape = (gamma.shape[2], -1)
    within = masked_softmax(scores.unflatten(2, shape), mask[:, None].unflatten(2, shape))
    return (within * gamma.unsqueeze(3)).flatten(2)


def _hidden_states(words: RecurrenceOutput, sentences: RecurrenceOutput) -> tuple[torch.Tensor, ...]:
    """Word vectors and word-level states [B, K, L + 1, ...], then sentence-level states [B, K, D] of each layer."""
    shape = sentences.states.shape[:2]
    word_level = [tensor.unflatten(0, shape) for tensor in (words.word_vectors, *words.layer_states)]
    return *word_level, *sentences.layer_states


def _no_attentions(inputs: StoryInputs, triple_attention: torch.Tensor | None, like: torch.Tensor) -> tuple:
    """The attentions of an encoder that attends to nothing but, with knowledge, the triples of a word."""
    batch_size, num_sentences, num_words = inputs.word_ids.shape
    nothing = like.new_zeros(batch_size, num_sentences, num_words + 1, num_words)
    return (nothing,) if triple_attention is None else (nothing, nothing, triple_attention)
