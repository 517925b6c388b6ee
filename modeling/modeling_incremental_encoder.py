# Copyright 2026 The hf_storyend authors.
# SPDX-License-Identifier: Apache-2.0
"""
Story ending generation with incremental encoding and commonsense knowledge.

Guan, Wang and Huang, "Story Ending Generation with Incremental Encoding and Commonsense Knowledge", AAAI 2019. This
file reads from top to bottom in the order of the paper. Its notation, and where each equation is:

| paper                                  | code                                     | where                          |
| -------------------------------------- | ---------------------------------------- | ------------------------------ |
| X_i, x_j; e(x)                         | `word_ids`, `word_mask`; `embed_tokens`  | `StoryEncoder`                 |
| h_j = LSTM(h_{j-1}, e(x_j), c_l)       | `state`; `states`: top layer             | `ContextLSTM.forward`          |
| R = (h, r, t)                          | `heads`, `relations`, `tails`            | `KnowledgeEncoder.encode`      |
| g(x) = sum alpha_R [h ; t] or M_R      | `graph_vectors`, `triple_attention`      | `KnowledgeEncoder.forward`     |
| beta_R = (W_r r)^T tanh(W_h h + W_t t) | `relation_`, `head_`, `tail_projection`  | `GraphAttention.encode`        |
| M_R = BiGRU(h, r, t)                   | `forward_reader`, `backward_reader`      | `ContextualAttention.encode`   |
| beta_R = h_k^T W_c M_R                 | `memory_scorer`                          | `ContextualAttention.score`    |
| beta_h = h_{j-1}^T W_s h_k             | `state_scorer`, `state_keys`             | `MultiSourceAttention.score`   |
| beta_x = h_{j-1}^T W_k g(x_k)          | `knowledge_scorer`, `knowledge_keys`     | `MultiSourceAttention.score`   |
| alpha_h, alpha_x                       | `state_attention`, `knowledge_attention` | `MultiSourceAttention.forward` |
| c_h = sum alpha_h h, c_x likewise      | `state_context`, `knowledge_context`     | `MultiSourceAttention.read`    |
| c_l = W_l [c_h ; c_x] + b_l            | `merge`                                  | `MultiSourceAttention.read`    |
| sentence i attends to sentence i - 1   | `memory`                                 | `IncrementalEncoder.encode`    |
| P(y_t) = softmax(W_0 s_t + b_0)        | `outputs`, `lm_head`                     | `_next_word_logits`            |
| Phi_en, Phi_de, Phi                    | `encoder_loss`, `ending_loss`, `loss`    | `_encoder_loss`, `_losses`     |

Shapes: B stories, K sentences, L words, N triples (of a word), J steps, T words of the ending, S attention sources,
E word vector, G graph vector, D hidden state, V vocabulary.

The configuration chooses the system: `story_encoder` (this file's incremental encoder, or one of `baselines.py`),
`knowledge`, `copy` (`copying.py`) and `tail_pointer` (`tail_pointer.py`). `recurrence_implementation` chooses how a
sentence is computed: `"eager"` is the loop in this file, `"fused"` the same as one operation
(`fused_recurrence.py`), wherever it can be.

With `prediction_vector="state"` the next word is predicted from the state s_t, as the paper's equations say. With
`"attentional"` it is predicted from tanh(c(s_t) + W_d s_t), where the state *after* the step attends (Luong, Pham and
Manning, EMNLP 2015), and the next sentence attends to these vectors instead of states. The authors' released code does
the latter: clues reach the softmax in one step, and are passed on from sentence to sentence.

What the paper leaves open, decided here:

- **Symbols.** `input_ids` are words only. The encoder puts a start symbol before every sentence; supervised sentences
  and endings close with an end symbol, which is predicted and never read. Only states at words are attended to.
- **First sentence.** It has nothing to attend to: its context vector is zero, a plain LSTM.
- **Between sentences.** The state of all layers after the last word starts the next sentence, and the ending. A
  sentence without words is skipped, and the next one attends to the last sentence that has any.
- **Query and keys.** The top layer, before the step (query) and at the words of the preceding sentence (keys, values).
- **Word without triples.** An empty sum: its graph vector is zero and its score 0. It stays in the softmax over
  words, so that "no knowledge" can be attended to, unless `attend_empty_graphs` is false.
- **Scale of scores.** The weights of all scorers (W_s, W_k, W_c, W_r) are stored times the square root of the size of
  what they score, and scores are divided by it. The equations are the same; learning is not: a score sums D x D
  products, and without the factor some steps of Adam turn attention into a choice of one word that can't be undone.
- **Sizes.** c_l has D numbers; the GRU has E a direction, so that G = 2E in both knowledge encoders; W_h, W_r and W_t
  are E by E.
- **Dropout.** On word vectors entering the LSTM, between layers and before `lm_head`; not on recurrent
  connections, attention weights or the concepts inside graphs. The default is none.
- **Unit of the loss.** Both sums are divided by the number of ending words of the batch, so that
  `loss = ending_loss + encoder_loss_weight * encoder_loss` weighs every word alike, as the paper's sum does, and
  `exp(ending_loss)` is the perplexity of the endings.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from transformers import (
    GenerationConfig,
    GenerationMixin,
    LogitsProcessorList,
    PreTrainedModel,
    SuppressTokensLogitsProcessor,
)
from transformers import initialization as init
from transformers.cache_utils import Cache
from transformers.generation.streamers import BaseStreamer
from transformers.modeling_outputs import Seq2SeqLMOutput
from transformers.utils import ModelOutput

from .configuration_incremental_encoder import IncrementalEncoderConfig
from .copying import CopyMechanism, CopyMemory, Offers, check_oov_labels, extend_logits, make_finite, pointer_loss
from .ending_ranker import EndingRanker, RankerOutput, ending_log_probabilities, ranker_inputs
from .fused_recurrence import can_fuse, fused_recurrence
from .generation_arguments import check_arguments, for_ended_prompts, with_max_length
from .loading import (
    check_adapters,
    check_finite,
    check_generation_settings,
    check_missing_keys,
    check_shards,
    check_size,
    check_size_of_files,
    error_context,
    library_versions,
)
from .losses import (
    IGNORED,
    SampledSoftmax,
    add_to_every_word,
    cross_entropy_sum,
    next_word_targets,
    projected_cross_entropy,
    subsample_targets,
)
from .oov_ids import to_named_ids
from .stop_strings import StopAtStrings
from .story_inputs import (
    HostEnding,
    StoryInputs,
    check_prompts,
    check_target_ids,
    decoder_step_mask,
    output_columns,
    prepare_story_inputs,
    refuse_unknown,
)
from .tail_pointer import TailMemory, TailPointer, WordSources, boost_forms, form_scores, split_probabilities
from .tensor_utils import (
    DistinctTriples,
    PackedTokens,
    is_eager_mode,
    masked_softmax,
    on_host,
    upcast,
    weighted_sum,
)

# State of all layers: a list of (hidden [B, D], cell [B, D]), the first layer first.
LSTMState = list[tuple[torch.Tensor, torch.Tensor]]


class GateLinear(nn.Linear):
    """
    Linear map to the input, forget, candidate and output gates. `init_std` is the standard deviation of its weights
    before training; the bias of the forget gate starts at 1, so that a state passes from sentence to sentence.
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

    The part of the first layer that depends on the word alone, `word_gates`, is one product for all words; the rest,
    `step_gates`, waits for the step.

    Args:
        config: Sizes, dropout and the spread of word vectors.
        input_size: Size of the input if it is not word vectors but the states of an LSTM below.
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
        """The words' share of the first layer's gates, for all positions: [..., E] -> [..., 4D]."""
        return self.word_gates(self.dropout(word_vectors))

    def forward(self, word_gates: torch.Tensor, context: torch.Tensor | None, state: LSTMState) -> LSTMState:
        """One step: word_gates [B, 4D], context [B, D] if there is one, and the state before it -> that after it."""
        new_state: LSTMState = []
        layer_input = context
        for layer, (hidden, cell) in enumerate(state):
            inputs = hidden if layer_input is None else torch.cat((layer_input, hidden), dim=-1)
            gates = self.step_gates[layer](inputs)
            if layer == 0:
                gates = gates + word_gates
            hidden, cell = lstm_cell(gates, cell)
            new_state.append((hidden, cell))
            layer_input = self.dropout(hidden)
        return new_state


def lstm_cell(gates: torch.Tensor, cell: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Hidden state and cell [B, D] after a step, from the gate inputs [B, 4D] and the cell before it."""
    input_gate, forget_gate, candidate, output_gate = gates.chunk(4, dim=-1)
    cell = forget_gate.sigmoid() * cell + input_gate.sigmoid() * candidate.tanh()
    return output_gate.sigmoid() * cell.tanh(), cell


@dataclass
class EncodedTriples:
    """The U distinct triples of a batch, encoded once, and where they occur. A frequent word's triples occur often."""

    vectors: torch.Tensor  # [U, G], what a graph vector sums
    scores: torch.Tensor  # [U] or [U, D]: the score itself, or the key that a hidden state is multiplied with
    tokens: list[PackedTokens]  # of each sentence, the words that have triples; R of them
    triples: list[torch.Tensor]  # of each sentence, [R, N]: which triple
    masks: list[torch.Tensor]  # of each sentence, [R, N]: true at triples


class KnowledgeEncoder(nn.Module):
    """Base of both encoders: a graph vector is the attention-weighted sum over the triples of a word."""

    def __init__(self, config: IncrementalEncoderConfig):
        super().__init__()
        self.embed_relations = nn.Embedding(config.num_relations, config.embedding_size)

    def encode_story(
        self,
        triples: DistinctTriples,
        triple_mask: torch.Tensor,
        has_triples: torch.Tensor,
        embed_tokens: nn.Embedding,
    ) -> EncodedTriples:
        """
        Encode the distinct triples (head word, relation, tail word) of K sentences. They stand where `triple_mask`
        [B, K, L, N] is true; has_triples [B, K, L] is on the host.
        """
        heads, relations, tails = triples.ids.unbind(-1)
        # As one sequence: hooks of the embeddings expect [B, J, E].
        head_vectors, tail_vectors = (embed_tokens(ids.unsqueeze(0)).squeeze(0) for ids in (heads, tails))
        vectors, scores = self.encode(head_vectors, self.embed_relations(relations), tail_vectors)
        tokens = [PackedTokens.where(mask, triple_mask.device) for mask in has_triples.unbind(1)]
        return EncodedTriples(
            vectors,
            scores,
            tokens,
            triples=[packed.gather(rows) for packed, rows in zip(tokens, triples.index.unbind(1), strict=True)],
            masks=[packed.gather(rows) for packed, rows in zip(tokens, triple_mask.unbind(1), strict=True)],
        )

    def forward(
        self, encoded: EncodedTriples, sentence: int, states: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """
        Graph vectors g(x) [B, L, G] of the words of one sentence and the attention alpha_R [B, L, N] to the triples of
        each. A word without triples has the zero vector. `states` [B, L, D] are the hidden states at the words.
        """
        tokens, triples = encoded.tokens[sentence], encoded.triples[sentence]
        scores = self.score(functional.embedding(triples, encoded.scores), tokens.gather(states))
        triple_attention = masked_softmax(scores, encoded.masks[sentence])
        graph_vectors = weighted_sum(triple_attention, functional.embedding(triples, encoded.vectors))
        return tokens.scatter(graph_vectors), tokens.scatter(triple_attention)

    def encode(
        self, heads: torch.Tensor, relations: torch.Tensor, tails: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Vectors [U, E] of the distinct triples' elements -> what graph vectors sum [U, G], and scores or keys."""
        raise NotImplementedError

    def score(self, scores: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
        """beta_R [R, N] from the scores or keys of the triples and the hidden states [R, D] at their words."""
        raise NotImplementedError


class GraphAttention(KnowledgeEncoder):
    """GA: sum of `[head ; tail]`, weighted by how well the relation fits the two."""

    def __init__(self, config: IncrementalEncoderConfig):
        super().__init__(config)
        size = config.embedding_size
        self.head_projection = nn.Linear(size, size, bias=False)
        self.relation_projection = nn.Linear(size, size, bias=False)
        self.tail_projection = nn.Linear(size, size, bias=False)
        self.score_scale = size**-0.5

    def encode(
        self, heads: torch.Tensor, relations: torch.Tensor, tails: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        pairs = (self.head_projection(heads) + self.tail_projection(tails)).tanh()
        scores = (self.relation_projection(relations) * pairs).sum(dim=-1, keepdim=True) * self.score_scale
        return torch.cat((heads, tails), dim=-1), scores

    def score(self, scores: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
        # No state is needed: the score of a triple is the same at every word.
        return scores.squeeze(-1)


class ContextualAttention(KnowledgeEncoder):
    """CA: sum of the triples' BiGRU encodings, weighted by the hidden state at the word itself."""

    def __init__(self, config: IncrementalEncoderConfig):
        super().__init__(config)
        size = config.embedding_size
        # Cells, not `nn.GRU`, which can't be compiled; a triple has but three elements.
        self.forward_reader = nn.GRUCell(size, size)
        self.backward_reader = nn.GRUCell(size, size)
        self.memory_scorer = nn.Linear(config.graph_size, config.hidden_size, bias=False)
        self.score_scale = config.hidden_size**-0.5

    def encode(
        self, heads: torch.Tensor, relations: torch.Tensor, tails: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        forward = backward = torch.zeros_like(heads)
        for element in (heads, relations, tails):
            forward = self.forward_reader(element, forward)
        for element in (tails, relations, heads):
            backward = self.backward_reader(element, backward)
        memories = torch.cat((forward, backward), dim=-1)  # M_R
        return memories, self.memory_scorer(memories) * self.score_scale

    def score(self, scores: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
        return (scores @ states.unsqueeze(-1)).squeeze(-1)


def build_knowledge_encoder(config: IncrementalEncoderConfig) -> KnowledgeEncoder | None:
    encoders = {"graph_attention": GraphAttention, "contextual_attention": ContextualAttention}
    return None if config.knowledge is None else encoders[config.knowledge](config)


@dataclass
class AttentionMemory:
    """Keys and values of what is attended to: the preceding sentence, or all words of a story in the baselines."""

    states: torch.Tensor  # [B, L, D]
    state_keys: torch.Tensor  # [B, L, D]
    word_mask: torch.Tensor  # [B, L], true at words
    # With knowledge.
    graph_vectors: torch.Tensor | None = None  # [B, L, G]
    knowledge_keys: torch.Tensor | None = None  # [B, L, D]
    graph_mask: torch.Tensor | None = None  # [B, L], true at graphs that can be attended to
    # In hierarchical attention: the sentence level.
    sentence_states: torch.Tensor | None = None  # [B, K, D]
    sentence_keys: torch.Tensor | None = None  # [B, K, D]

    def replaced_where(self, rows: torch.Tensor, new: AttentionMemory) -> AttentionMemory:
        """`new` in the rows [B] that are true, this memory in the others; the rows are those of the host."""
        if is_eager_mode(rows) and rows.all():
            return new
        rows = rows[:, None].to(new.states.device)
        pairs = {item.name: (getattr(new, item.name), getattr(self, item.name)) for item in fields(self)}
        return AttentionMemory(
            **{
                name: None if ours is None else torch.where(rows if ours.ndim == 2 else rows[..., None], theirs, ours)
                for name, (theirs, ours) in pairs.items()
            }
        )


class MultiSourceAttention(nn.Module):
    """Bilinear attention to the hidden states and to the graph vectors of a sentence, merged into one context."""

    def __init__(self, config: IncrementalEncoderConfig):
        super().__init__()
        self.hidden_size, self.graph_size = config.hidden_size, config.graph_size
        self.score_scale = config.hidden_size**-0.5
        self.attends_empty_graphs = config.attend_empty_graphs
        self.state_scorer = nn.Linear(config.hidden_size, config.hidden_size, bias=False)
        if config.knowledge is not None:
            self.knowledge_scorer = nn.Linear(config.graph_size, config.hidden_size, bias=False)
        self.merge = nn.Linear(config.hidden_size + config.graph_size, config.hidden_size)
        # One scale with and without graphs; a larger one would drown the state in the attentional vector.
        self.merge.init_std = 0.5 * config.hidden_size**-0.5

    def project_memory(
        self,
        states: torch.Tensor,
        word_mask: torch.Tensor,
        graph_vectors: torch.Tensor | None = None,
        has_triples: torch.Tensor | None = None,
    ) -> AttentionMemory:
        """Keys of a sentence, once, from its states [B, L, D] and graph vectors [B, L, G]; masks are [B, L]."""
        memory = AttentionMemory(states, self.state_scorer(states) * self.score_scale, word_mask)
        if graph_vectors is not None:
            memory.graph_vectors = graph_vectors
            memory.knowledge_keys = self.knowledge_scorer(graph_vectors) * self.score_scale
            memory.graph_mask = word_mask if self.attends_empty_graphs else word_mask & has_triples
        return memory

    def forward(
        self, queries: torch.Tensor, memory: AttentionMemory | None
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """
        Contexts c_l [B, J, D] for queries [B, J, D], and the attention [B, J, S, L] to states and graphs. Where
        there is no preceding sentence, the context is zero.
        """
        if memory is None:
            return torch.zeros_like(queries), None
        state_scores, knowledge_scores = self.score(queries, memory)
        state_attention = masked_softmax(state_scores, memory.word_mask[:, None])  # alpha_h
        knowledge_attention = None
        if knowledge_scores is not None and memory.graph_mask is not None:
            knowledge_attention = masked_softmax(knowledge_scores, memory.graph_mask[:, None])  # alpha_x
        context = self.read(state_attention, knowledge_attention, memory)
        sources = [state_attention] if knowledge_attention is None else [state_attention, knowledge_attention]
        return context * memory.word_mask.any(dim=1)[:, None, None], torch.stack(sources, dim=2)

    def score(self, queries: torch.Tensor, memory: AttentionMemory) -> tuple[torch.Tensor, torch.Tensor | None]:
        """beta_h and, with knowledge, beta_x, both [B, J, L]."""
        state_scores = queries @ memory.state_keys.mT
        return state_scores, None if memory.knowledge_keys is None else queries @ memory.knowledge_keys.mT

    def read(
        self, state_attention: torch.Tensor, knowledge_attention: torch.Tensor | None, memory: AttentionMemory
    ) -> torch.Tensor:
        """c_l [B, J, D] from attention weights [B, J, L]."""
        state_context = state_attention @ memory.states  # c_h
        if knowledge_attention is None:
            return self.merge(state_context)
        knowledge_context = knowledge_attention @ memory.graph_vectors  # c_x
        return self.merge(torch.cat((state_context, knowledge_context), dim=-1))  # c_l = W_l [c_h ; c_x] + b_l


@dataclass
class RecurrenceOutput:
    """What J steps of a sentence give."""

    word_vectors: torch.Tensor  # [B, J, E]
    layer_states: list[torch.Tensor]  # a layer: [B, J, D]
    state: LSTMState  # after the last step
    # [B, J, S, L'], to look at: it may pass no gradient. None if there is nothing to attend to.
    attention: torch.Tensor | None
    # Luong's attentional vector [B, J, D], where the next word is predicted from it.
    attentional: torch.Tensor | None = None

    @property
    def states(self) -> torch.Tensor:
        """States of the top layer, [B, J, D]."""
        return self.layer_states[-1]

    @property
    def outputs(self) -> torch.Tensor:
        """What the next word is predicted from, [B, J, D]."""
        return self.states if self.attentional is None else self.attentional


def eager_recurrence(
    lstm: ContextLSTM,
    attention: nn.Module | None,
    word_vectors: torch.Tensor,
    state: LSTMState,
    memory: AttentionMemory | None,
    step_mask: torch.Tensor | None,
) -> tuple[list[torch.Tensor], LSTMState, torch.Tensor | None]:
    """
    States of each layer [B, J, D], state after the last step and attention [B, J, S, L'], step by step: the state
    before a step attends to the memory, and the context enters the LSTM beside the word. Without an `attention` there
    is no context. Steps where `step_mask` [B, J] is false leave the state as it is.
    """
    step_mask = None if step_mask is None else step_mask.to(word_vectors.device)
    word_gates = lstm.project_words(word_vectors)
    steps, attentions = [], []
    for step in range(word_vectors.shape[1]):
        context = None
        if attention is not None:
            contexts, weights = attention(state[-1][0].unsqueeze(1), memory)
            context = contexts.squeeze(1)
            attentions.append(weights)
        new_state = lstm(word_gates[:, step], context, state)
        state = new_state if step_mask is None else keep_state_where(step_mask[:, step], new_state, state)
        steps.append([hidden for hidden, _ in state])
    layer_states = [torch.stack(hiddens, dim=1) for hiddens in zip(*steps, strict=True)]
    if memory is None:
        return layer_states, state, None
    attended = torch.cat(attentions, dim=1)
    return layer_states, state, attended if step_mask is None else attended * step_mask[..., None, None]


def keep_state_where(mask: torch.Tensor, new: LSTMState, old: LSTMState) -> LSTMState:
    """Rows of `new` where `mask` [B] is true, rows of `old` elsewhere: padding leaves a state as it was."""
    mask = mask.unsqueeze(-1)
    return [
        (torch.where(mask, new_hidden, hidden), torch.where(mask, new_cell, cell))
        for (new_hidden, new_cell), (hidden, cell) in zip(new, old, strict=True)
    ]


def stack_state(state: LSTMState) -> tuple[torch.Tensor, torch.Tensor]:
    """Hidden and cell as batch-first tensors [B, layers, D], as `generate()` expands and reorders them."""
    return torch.stack([hidden for hidden, _ in state], dim=1), torch.stack([cell for _, cell in state], dim=1)


def unstack_state(hidden: torch.Tensor, cell: torch.Tensor) -> LSTMState:
    return list(zip(hidden.unbind(1), cell.unbind(1), strict=True))


@dataclass
class StoryEncoderOutput(ModelOutput):
    """
    An encoded story: all that the decoder needs. Every tensor has the batch first, so that `generate()` can expand it.

    Args:
        last_hidden_state (`torch.Tensor` of shape `[B, M, D]`):
            States at the words that the decoder attends to: the L words of the last sentence in incremental
            encoding, all K * L words of the story in the baselines.
        state_hidden, state_cell (`torch.Tensor` of shape `[B, layers, D]`):
            LSTM state after the last word: where the ending starts from.
        state_keys (`torch.Tensor` of shape `[B, M, D]`), word_mask (`[B, M]`):
            Keys of those words, and which of them are real.
        graph_vectors (`torch.Tensor` of shape `[B, M, G]`, *optional*), knowledge_keys (`[B, M, D]`, *optional*),
        graph_mask (`[B, M]`, *optional*):
            With knowledge: their graphs, the keys of the graphs, and which of them can be attended to.
        sentence_states, sentence_keys (`torch.Tensor` of shape `[B, K, D]`, *optional*):
            In hierarchical encoding: the sentence level.
        copy_keys (`torch.Tensor` of shape `[B, K * L, D]`, *optional*), copy_vectors (`[B, K * L, E]`, *optional*),
        copy_ids (`[B, K * L]`, *optional*):
            If words can be copied: see [`CopyMemory`].
        tail_keys (`torch.Tensor` of shape `[B, R, D]`, *optional*), tail_weights (`[B, R]`, *optional*),
        tail_ids (`[B, R, F]`, *optional*), tail_positions (`[B, R]`, *optional*):
            With a tail pointer: see [`TailMemory`].
        hidden_states (`tuple` of `[B, K, L + 1, E]` and then, for each layer, `[B, K, L + 1, D]`, *optional*):
            Word vectors and states of every step; step 0 reads the start symbol, step j word j.
        attentions (`tuple`, *optional*):
            State attention and knowledge attention, both `[B, K, L + 1, L]`: what each step gave to each word of
            the preceding sentence (zero in the first, and in the baselines, which encode without attention); then
            the attention `[B, K, L, N]` to the triples of each word. Without knowledge, only the first. They may carry
            no gradient.
    """

    last_hidden_state: torch.Tensor | None = None
    state_hidden: torch.Tensor | None = None
    state_cell: torch.Tensor | None = None
    state_keys: torch.Tensor | None = None
    word_mask: torch.Tensor | None = None
    graph_vectors: torch.Tensor | None = None
    knowledge_keys: torch.Tensor | None = None
    graph_mask: torch.Tensor | None = None
    sentence_states: torch.Tensor | None = None
    sentence_keys: torch.Tensor | None = None
    copy_keys: torch.Tensor | None = None
    copy_vectors: torch.Tensor | None = None
    copy_ids: torch.Tensor | None = None
    tail_keys: torch.Tensor | None = None
    tail_weights: torch.Tensor | None = None
    tail_ids: torch.Tensor | None = None
    tail_positions: torch.Tensor | None = None
    hidden_states: tuple[torch.Tensor, ...] | None = None
    attentions: tuple[torch.Tensor, ...] | None = None

    @classmethod
    def from_parts(
        cls,
        state: LSTMState,
        memory: AttentionMemory,
        pointers: tuple[CopyMemory | None, TailMemory | None],
        **kwargs: Any,
    ) -> StoryEncoderOutput:
        state_hidden, state_cell = stack_state(state)
        attended = {item.name: getattr(memory, item.name) for item in fields(memory) if item.name != "states"}
        named = {
            f"{prefix}_{name}": tensor
            for prefix, pointer in zip(("copy", "tail"), pointers, strict=True)
            if pointer is not None
            for name, tensor in pointer._asdict().items()
        }
        return cls(memory.states, state_hidden, state_cell, **attended, **named, **kwargs)

    @classmethod
    def from_tuple(cls, values: Sequence[Any]) -> StoryEncoderOutput:
        """Read what `to_tuple` gave, field by field."""
        names = [item.name for item in fields(cls)]
        if len(values) != len(names):
            raise ValueError(
                f"`encoder_outputs` as a tuple has {len(names)} entries, None included; got {len(values)}."
            )
        return cls(**dict(zip(names, values, strict=True)))

    def to_tuple(self) -> tuple[Any, ...]:
        """All fields, None where there is nothing: without that, nobody could tell one optional field from another."""
        return tuple(getattr(self, item.name) for item in fields(self))

    @property
    def state(self) -> LSTMState:
        return unstack_state(self.state_hidden, self.state_cell)

    @property
    def memory(self) -> AttentionMemory:
        return AttentionMemory(
            self.last_hidden_state,
            self.state_keys,
            self.word_mask,
            self.graph_vectors,
            self.knowledge_keys,
            self.graph_mask,
            self.sentence_states,
            self.sentence_keys,
        )

    @property
    def copy_memory(self) -> CopyMemory | None:
        return None if self.copy_keys is None else CopyMemory(self.copy_keys, self.copy_vectors, self.copy_ids)

    @property
    def tail_memory(self) -> TailMemory | None:
        if self.tail_keys is None:
            return None
        return TailMemory(self.tail_keys, self.tail_weights, self.tail_ids, self.tail_positions)


class StoryEncoder(nn.Module):
    """
    Base of all story encoders. It owns the word vectors and, in `lstm` and `attention`, what the decoder reads the
    ending with. A system is a subclass that makes those two and defines `encode`.

    Args:
        config: The model's configuration.
        copy_size: Size of the states that words and tails are pointed to by; that of hidden states by default.
    """

    # generate() asks the encoder for it.
    main_input_name = "input_ids"
    lstm: ContextLSTM
    attention: nn.Module
    # W_d, where words are predicted from the attentional vector.
    attentional: nn.Linear | None

    def __init__(self, config: IncrementalEncoderConfig, copy_size: int | None = None):
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocab_size, config.embedding_size)
        copy_size = copy_size or config.hidden_size
        self.copying = CopyMechanism(config, copy_size) if config.copy else None
        self.tail_pointer = TailPointer(config, copy_size) if config.tail_pointer else None

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        triple_ids: torch.Tensor | None = None,
        triple_mask: torch.Tensor | None = None,
        copy_ids: torch.Tensor | None = None,
        triple_weights: torch.Tensor | None = None,
        tail_form_ids: torch.Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
    ) -> StoryEncoderOutput | tuple:
        inputs = prepare_story_inputs(
            self.config, input_ids, attention_mask, triple_ids, triple_mask, copy_ids, triple_weights, tail_form_ids
        )
        output, _ = self.encode(inputs, output_attentions, output_hidden_states)
        return output if return_dict is not False else output.to_tuple()

    def encode(
        self, inputs: StoryInputs, output_attentions: bool | None = None, output_hidden_states: bool | None = None
    ) -> tuple[StoryEncoderOutput, torch.Tensor | None]:
        """
        Encode a story. The second result is, in encoders that are supervised, what predicts the next word of the
        context at every step, [B, K, L + 1, D].
        """
        raise NotImplementedError

    def decode(
        self,
        word_ids: torch.Tensor,
        state: LSTMState,
        memory: AttentionMemory | None,
        step_mask: torch.Tensor | None = None,
        copies: CopyMemory | None = None,
    ) -> RecurrenceOutput:
        """
        Read word_ids [B, J] from `state` on, attending to `memory`; steps not in `step_mask` [B, J] do nothing. The
        mask is best that of the host, which otherwise waits for it.
        """
        output = self.recur(self.lstm, self.attention, self.embed(word_ids, copies), state, memory, step_mask)
        if self.attentional is None:
            return output
        # The states after the steps attend: all steps at once, as the recurrence does not wait for it.
        contexts, attention = self.attention(output.states, memory)
        output.attentional = (contexts + self.attentional(output.states)).tanh()  # tanh(c(s_t) + W_d s_t)
        if attention is not None:
            is_read = None if step_mask is None else step_mask[..., None, None].to(attention.device)
            output.attention = attention if is_read is None else attention * is_read
        return output

    def initial_state(self, lstm: ContextLSTM, word_ids: torch.Tensor) -> LSTMState:
        """Zeros where the words are: offloaded weights stand on no device."""
        zero = torch.zeros((), dtype=self.embed_tokens.weight.dtype, device=word_ids.device)
        return lstm.initial_state(word_ids.shape[0], like=zero)

    def recur(
        self,
        lstm: ContextLSTM,
        attention: nn.Module | None,
        word_vectors: torch.Tensor,
        state: LSTMState,
        memory: AttentionMemory | None,
        step_mask: torch.Tensor | None,
    ) -> RecurrenceOutput:
        """Run an LSTM over vectors [B, J, E]: fused where that is asked for and possible, else eager."""
        is_fused = self.config.recurrence_implementation == "fused" and can_fuse(lstm, attention, word_vectors)
        recurrence = fused_recurrence if is_fused else eager_recurrence
        return RecurrenceOutput(word_vectors, *recurrence(lstm, attention, word_vectors, state, memory, step_mask))

    def embed(self, word_ids: torch.Tensor, copies: CopyMemory | None = None) -> torch.Tensor:
        """Word vectors [B, J, E]; with copying, words of the story bring their selective read."""
        if self.copying is None or copies is None:
            return self.embed_tokens(word_ids)
        known = word_ids.masked_fill(word_ids >= self.config.vocab_size, self.config.unk_token_id)
        return self.embed_tokens(known) + self.copying.selective_read(word_ids, copies)

    def prepend_start(self, inputs: StoryInputs) -> tuple[torch.Tensor, torch.Tensor]:
        """
        Words with the start symbol before every sentence, and on the host which steps are real, both [B, K, L + 1]. A
        sentence without words is skipped, start symbol included.
        """
        word_ids = functional.pad(inputs.word_ids, (1, 0), value=self.config.bos_token_id)
        word_mask = inputs.host.word_mask
        step_mask = torch.cat((word_mask.any(dim=2, keepdim=True), word_mask), dim=2)
        return word_ids, step_mask

    def project_pointers(
        self, states: torch.Tensor, inputs: StoryInputs
    ) -> tuple[CopyMemory | None, TailMemory | None]:
        """Memories for copying words and for pointing to tails, as far as the model does, from states [B, K, L, C]."""
        copies = tails = None
        if self.copying is not None:
            copies = self.copying.project_memory(states, inputs.copy_ids, inputs.word_mask)
        if self.tail_pointer is not None:
            tails = self.tail_pointer.project_memory(states, inputs, self.embed_tokens)
        return copies, tails


class IncrementalEncoder(StoryEncoder):
    """Incremental encoding: sentences one after the other, each attending to the one before it, the ending too."""

    def __init__(self, config: IncrementalEncoderConfig):
        super().__init__(config)
        self.lstm = ContextLSTM(config)
        self.attention = MultiSourceAttention(config)
        self.knowledge = build_knowledge_encoder(config)
        self.attentional = build_attentional(config)

    def encode(
        self, inputs: StoryInputs, output_attentions: bool | None = None, output_hidden_states: bool | None = None
    ) -> tuple[StoryEncoderOutput, torch.Tensor]:
        word_ids, step_mask = self.prepend_start(inputs)
        state = self.initial_state(self.lstm, word_ids)
        triples = None
        if self.knowledge is not None:
            triples = self.knowledge.encode_story(
                inputs.triples, inputs.triple_mask, inputs.host.has_triples, self.embed_tokens
            )
        memory: Any = None
        sentences: list[RecurrenceOutput] = []
        triple_attentions: list[torch.Tensor] = []
        for number in range(word_ids.shape[1]):
            sentence = self.decode(word_ids[:, number], state, memory, step_mask[:, number])
            graph_vectors = None
            if triples is not None:
                graph_vectors, triple_attention = self.knowledge(triples, number, sentence.states[:, 1:])
                triple_attentions.append(triple_attention)
            memory = self._next_memory(memory, sentence, graph_vectors, inputs, number)
            state = sentence.state
            sentences.append(sentence)
        assert memory is not None, "a story has a sentence"
        outputs = torch.stack([sentence.outputs for sentence in sentences], dim=1)  # [B, K, L + 1, D]
        encoded = StoryEncoderOutput.from_parts(
            state,
            memory,
            self.project_pointers(outputs[:, :, 1:], inputs),
            hidden_states=stack_hidden_states(sentences) if output_hidden_states else None,
            attentions=_stack_attentions(sentences, triple_attentions) if output_attentions else None,
        )
        return encoded, outputs

    def _next_memory(
        self,
        memory: AttentionMemory | None,
        sentence: RecurrenceOutput,
        graph_vectors: torch.Tensor | None,
        inputs: StoryInputs,
        number: int,
    ) -> AttentionMemory:
        """What the next sentence attends to: this one, or where it is empty the last one that has words."""
        word_mask, has_triples = inputs.word_mask[:, number], inputs.triple_mask[:, number].any(dim=-1)
        new = self.attention.project_memory(sentence.outputs[:, 1:], word_mask, graph_vectors, has_triples)
        has_words = inputs.host.word_mask[:, number].any(dim=1)
        return new if memory is None else memory.replaced_where(has_words, new)


def stack_hidden_states(sentences: Sequence[RecurrenceOutput]) -> tuple[torch.Tensor, ...]:
    """Word vectors and states of each layer of K sentences, [B, K, L + 1, ...]."""
    word_vectors = torch.stack([sentence.word_vectors for sentence in sentences], dim=1)
    layers = zip(*(sentence.layer_states for sentence in sentences), strict=True)
    return word_vectors, *(torch.stack(states, dim=1) for states in layers)


def _stack_attentions(
    sentences: list[RecurrenceOutput], triple_attentions: list[torch.Tensor]
) -> tuple[torch.Tensor, ...]:
    """Attention a source [B, K, L + 1, L], zero for the first sentence; then the triple attention."""
    batch_size, num_steps = sentences[0].states.shape[:2]
    num_sources = 2 if triple_attentions else 1
    nothing = sentences[0].states.new_zeros(batch_size, num_steps, num_sources, num_steps - 1)
    steps = [nothing if sentence.attention is None else sentence.attention for sentence in sentences]
    sources = torch.stack(steps, dim=1).unbind(dim=3)
    return (*sources, torch.stack(triple_attentions, dim=1)) if triple_attentions else sources


def build_attentional(config: IncrementalEncoderConfig) -> nn.Linear | None:
    if config.prediction_vector != "attentional":
        return None
    return nn.Linear(config.hidden_size, config.hidden_size, bias=False)


def build_story_encoder(config: IncrementalEncoderConfig) -> StoryEncoder:
    """The encoder of a model, which its decoder shares."""
    # Here, because the baselines are built from the parts above.
    from .baselines import HierarchicalEncoder, SequenceEncoder

    encoders = {"incremental": IncrementalEncoder, "hierarchical": HierarchicalEncoder, "sequence": SequenceEncoder}
    return encoders[config.story_encoder](config)


@dataclass(eq=False, repr=False)
class RecurrentCache(Cache):
    """
    The decoder's memory between two words: the LSTM state, batch first. `hidden` and `cell` are `[B, layers, D]`.

    Its size does not grow with the number of words; there is nothing to crop. It is a pytree: `torch.export` takes and
    returns it.
    """

    is_compileable = False
    is_croppable = False

    hidden: torch.Tensor | None = None
    cell: torch.Tensor | None = None
    # A tensor, not a number: a graph would be good for one length only.
    num_words: torch.Tensor | None = None

    def __post_init__(self) -> None:
        super().__init__(layers=[])

    def update_state(self, state: LSTMState, num_new_words: int) -> None:
        self.hidden, self.cell = stack_state(state)
        num_read = torch.zeros((), dtype=torch.long) if self.num_words is None else self.num_words
        self.num_words = num_read + num_new_words

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return 0 if self.num_words is None else int(self.num_words)

    def get_max_length(self, layer_idx: int = 0) -> int:
        return -1

    def reset(self) -> None:
        self.hidden = self.cell = self.num_words = None

    def reorder_cache(self, beam_idx: torch.LongTensor) -> None:
        self.batch_select_indices(beam_idx)

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        if self.hidden is not None and self.cell is not None:
            self.hidden = self.hidden.index_select(0, indices.to(self.hidden.device))
            self.cell = self.cell.index_select(0, indices.to(self.cell.device))

    def batch_repeat_interleave(self, repeats: int) -> None:
        if self.hidden is not None and self.cell is not None:
            self.hidden = self.hidden.repeat_interleave(repeats, dim=0)
            self.cell = self.cell.repeat_interleave(repeats, dim=0)

    def repeat_rows(self, num_rows: int) -> None:
        """For beams and samples: the state of each of B endings for the `num_rows / B` rows that go on from it."""
        num_states = num_rows if self.hidden is None else len(self.hidden)
        if num_rows % num_states:
            raise ValueError(
                f"`past_key_values` has {num_states} rows for {num_rows} rows of `decoder_input_ids`: give the state "
                "of these endings. What beam search returns has the states of all beams."
            )
        if num_rows > num_states:
            self.batch_repeat_interleave(num_rows // num_states)

    def crop(self, tokens_to_remove: int) -> None:
        raise ValueError("A recurrent state can't be taken back by some words; decode again from the start instead.")


torch.export.register_dataclass(RecurrentCache)


@dataclass
class EndingGenerationOutput(Seq2SeqLMOutput):
    """
    A [`~transformers.modeling_outputs.Seq2SeqLMOutput`] with both parts of the loss and with knowledge attention.

    Args:
        loss (`torch.Tensor`, *optional*): `ending_loss + encoder_loss_weight * encoder_loss`, when `labels` are given.
        logits (`torch.Tensor` of shape `[B, T, V]`, or `[B, T, V + slots]` if words can be copied, *optional*):
            Scores of the next word. None in training mode with `labels`: the loss does not need them.
        past_key_values (`RecurrentCache`, *optional*): LSTM state after the last word.
        decoder_hidden_states (`tuple`, *optional*): Word vectors `[B, T, E]`, then each layer's states `[B, T, D]`.
        cross_attentions (`tuple`, *optional*):
            One tensor `[B, T, L]`, the ending's state attention. In systems that attend to all sentences it is
            `[B, T, K * L]`, sentence after sentence.
        encoder_last_hidden_state, encoder_hidden_states, encoder_attentions: See [`StoryEncoderOutput`].
        ending_loss (`torch.Tensor`, *optional*): Mean negative log likelihood of an ending's word.
        encoder_loss (`torch.Tensor`, *optional*): Negative log likelihood of sentences 2..K, per word of the endings.
        knowledge_attentions (`torch.Tensor`, *optional*):
            The ending's knowledge attention, of the shape of its state attention. None without knowledge.
    """

    ending_loss: torch.Tensor | None = None
    encoder_loss: torch.Tensor | None = None
    knowledge_attentions: torch.Tensor | None = None

    @property
    def state_attentions(self) -> torch.Tensor | None:
        """[B, T, L]: what each step of the ending gave to the words of the last sentence."""
        return self.cross_attentions[0] if self.cross_attentions else None

    @property
    def encoder_state_attentions(self) -> torch.Tensor | None:
        """[B, K, L + 1, L]: what each step of a sentence gave to the words of the preceding one."""
        return self.encoder_attentions[0] if self.encoder_attentions else None

    @property
    def encoder_knowledge_attentions(self) -> torch.Tensor | None:
        """[B, K, L + 1, L]: what each step of a sentence gave to the graphs of the preceding one."""
        return self.encoder_attentions[1] if self.encoder_attentions and len(self.encoder_attentions) > 1 else None

    @property
    def triple_attentions(self) -> torch.Tensor | None:
        """[B, K, L, N]: attention to the triples of each word."""
        return self.encoder_attentions[2] if self.encoder_attentions and len(self.encoder_attentions) > 1 else None


class IncrementalEncoderPreTrainedModel(PreTrainedModel):
    """Weight initialisation and what transformers wants to know of the architecture."""

    config_class = IncrementalEncoderConfig
    config: IncrementalEncoderConfig
    base_model_prefix = ""
    main_input_name = "input_ids"
    supports_gradient_checkpointing = False
    _no_split_modules = ["IncrementalEncoder", "HierarchicalEncoder", "SequenceEncoder"]
    # Trainer then passes `num_items_in_batch`: accumulated gradients weigh words, not batches.
    accepts_loss_kwargs = True
    # Assisted decoding takes words back, which a recurrent state can't: generate() then refuses.
    _is_stateful = True

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """
        Scales under which a state carries the words that were read from the first step on: gates see every word with
        unit variance, and states reach the vocabulary doubled. With smaller ones training stays for hundreds of
        steps at the entropy of single words. Modules that need a scale of their own carry it as `init_std`.
        """
        if isinstance(module, nn.Embedding):
            init.normal_(module.weight, std=self.config.initializer_range)
        elif isinstance(module, nn.Linear):
            init.normal_(module.weight, std=getattr(module, "init_std", module.in_features**-0.5))
            if module.bias is not None:
                init.zeros_(module.bias)
            if hasattr(module, "initial_bias") and module.bias is not None:
                init.copy_(module.bias, module.initial_bias())
        elif isinstance(module, nn.LayerNorm):
            init.ones_(module.weight)
            init.zeros_(module.bias)
        elif isinstance(module, nn.GRUCell):
            for name, parameter in module.named_parameters():
                init.zeros_(parameter) if name.startswith("bias") else init.xavier_uniform_(parameter)


class IncrementalEncoderForEndingGeneration(IncrementalEncoderPreTrainedModel, GenerationMixin):
    """
    Reads a story and writes a one-sentence ending.

    ```python
    >>> from transformers import AutoModel, AutoTokenizer
    >>> tokenizer = AutoTokenizer.from_pretrained(path, trust_remote_code=True)
    >>> model = AutoModel.from_pretrained(path, trust_remote_code=True)
    >>> endings = model.generate(**tokenizer("Ann put a cake in the oven. She fell asleep.", return_tensors="pt"))
    >>> tokenizer.batch_decode(endings, skip_special_tokens=True)
    ```
    """

    _tied_weights_keys = {"lm_head.weight": "encoder.embed_tokens.weight"}

    def __init__(self, config: IncrementalEncoderConfig):
        if not torch.empty(0).is_meta:
            check_size(config)
        super().__init__(config)
        self.encoder = build_story_encoder(config)
        self.dropout = nn.Dropout(config.dropout)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size)
        self.lm_head.init_std = 2 * config.hidden_size**-0.5
        self.ranker = None if config.ranker_size is None else EndingRanker(config)
        self.post_init()
        # As in the authors' code. Loading a checkpoint replaces it by the checkpoint's own settings.
        self.generation_config.max_new_tokens = 30

    def gradient_checkpointing_enable(self, *args, **kwargs) -> None:
        raise ValueError(
            "Gradient checkpointing is not supported: a story has few steps; lower the batch size instead."
        )

    def get_encoder(self, *args, **kwargs) -> StoryEncoder:
        return self.encoder

    def get_input_embeddings(self) -> nn.Embedding:
        return self.encoder.embed_tokens

    def set_input_embeddings(self, value: nn.Embedding) -> None:
        self.encoder.embed_tokens = value

    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        triple_ids: torch.LongTensor | None = None,
        triple_mask: torch.Tensor | None = None,
        copy_ids: torch.LongTensor | None = None,
        triple_weights: torch.Tensor | None = None,
        tail_form_ids: torch.LongTensor | None = None,
        decoder_input_ids: torch.LongTensor | None = None,
        decoder_attention_mask: torch.Tensor | None = None,
        labels: torch.LongTensor | None = None,
        encoder_outputs: Any = None,
        past_key_values: RecurrentCache | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        num_items_in_batch: torch.Tensor | int | None = None,
        **kwargs: None,
    ) -> EndingGenerationOutput | tuple:
        r"""
        Args:
            input_ids (`torch.LongTensor` of shape `[B, K, L]`): Words of the story, without special symbols.
            attention_mask (`torch.Tensor` of shape `[B, K, L]`, *optional*): 1 at words, 0 at padding.
            triple_ids (`torch.LongTensor` of shape `[B, K, L, N, 3]`, *optional*):
                Triples of each word as head word, relation, tail word. None means that nothing is known.
            triple_mask (`torch.Tensor` of shape `[B, K, L, N]`, *optional*): 1 at triples, 0 at padding.
            copy_ids (`torch.LongTensor` of shape `[B, K, L]`, *optional*):
                If words can be copied: the ids under which the words of the story are copied, those of the vocabulary
                or, for words that it lacks, slots from `config.vocab_size` on; `input_ids` unless given. Then
                `labels` and `decoder_input_ids` may have the slots of their story. In place of a slot there may be
                an id that also spells the word (`oov_ids.py`).
            triple_weights (`torch.Tensor` of shape `[B, K, L, N]`, *optional*):
                With a tail pointer: how strongly a triple suggests its tail; 0 unless given.
            tail_form_ids (`torch.LongTensor` of shape `[B, K, L, N, F]`, *optional*):
                With a tail pointer: the words that each triple offers, `config.pad_token_id` elsewhere; its tail as it
                stands unless given.
            decoder_input_ids (`torch.LongTensor` of shape `[B, T]`, *optional*):
                What the decoder reads, the start symbol first; made from `labels` where those are given.
            decoder_attention_mask (`torch.Tensor` of shape `[B, T]`, *optional*):
                0 behind the end of a row, where nothing is read and all scores are 0; else 1.
            labels (`torch.LongTensor` of shape `[B, T]`, *optional*):
                The ending with its end symbol; -100 is ignored. Where the decoder's inputs are made from them, steps
                behind a story's last label are not read: what is returned for those means nothing.
            encoder_outputs (`StoryEncoderOutput`, *optional*):
                A story already encoded. The loss is then that of the ending alone.
            past_key_values (`RecurrentCache`, *optional*): State after the words that came before.
            use_cache (`bool`, *optional*): Return the state; `config.use_cache` unless given.
            output_attentions, output_hidden_states, return_dict (`bool`, *optional*): As everywhere in transformers.
            num_items_in_batch (`int`, *optional*):
                What the sums of losses are divided by, if not by this batch's number of ending words. In training
                without `labels` it says that the caller computes the loss, as `Trainer` does to smooth labels: then
                the logits are such that every word bears its share of the encoder loss.
            kwargs: Arguments of other models, such as `inputs_embeds`, only as None: PEFT hands them on so.
        """
        refuse_unknown(kwargs)
        output_attentions = _given(output_attentions, self.config.output_attentions)
        output_hidden_states = _given(output_hidden_states, self.config.output_hidden_states)
        return_dict = _given(return_dict, self.config.return_dict)
        labels, decoder_input_ids = self.output_columns(labels), self.output_columns(decoder_input_ids)

        encoder_loss = None
        if encoder_outputs is None:
            inputs = prepare_story_inputs(
                self.config,
                input_ids,
                attention_mask,
                triple_ids,
                triple_mask,
                copy_ids,
                triple_weights,
                tail_form_ids,
                ending=(labels, decoder_input_ids, decoder_attention_mask),
            )
            host = HostEnding(*inputs.host.ending, place_ids=inputs.host.place_ids)
            encoder_outputs, context_outputs = self.encoder.encode(inputs, output_attentions, output_hidden_states)
            is_supervised = labels is not None or (self.training and num_items_in_batch is not None)
            if is_supervised and context_outputs is not None and self.config.encoder_loss_weight > 0:
                encoder_loss = self._encoder_loss(context_outputs, inputs)
        else:
            if isinstance(encoder_outputs, (tuple, list)):
                encoder_outputs = StoryEncoderOutput.from_tuple(encoder_outputs)
            given = labels, decoder_input_ids, decoder_attention_mask, encoder_outputs.copy_ids
            host = HostEnding(*on_host(*given))

        # Steps behind the last label do nothing for the loss; nobody else sees them, unless they were asked for.
        is_shortened = labels is not None and (self.training or decoder_input_ids is None)
        decoder_input_ids = self._decoder_inputs(decoder_input_ids, labels, encoder_outputs, host)
        step_mask = decoder_step_mask(
            decoder_input_ids, host.decoder_attention_mask, host.labels if is_shortened else None
        )
        ending, cache = self._decode(decoder_input_ids, step_mask, encoder_outputs, past_key_values)
        logits = None
        if labels is None or not self.training:
            logits = self._next_word_logits(ending.outputs, encoder_outputs, step_mask)
            # For losses of others; only `generate()`, which needs none, says whether there is a cache.
            if use_cache is None and encoder_outputs.copy_memory is not None:
                logits = make_finite(logits, self.config.vocab_size)
            if labels is None and encoder_loss is not None:
                logits = self._with_encoder_loss(logits, decoder_input_ids, encoder_loss)
        attentions = ending.attention.unbind(dim=2) if output_attentions else ()
        output = EndingGenerationOutput(
            **self._losses(
                ending.outputs, encoder_outputs, logits, labels, host.labels, encoder_loss, num_items_in_batch
            ),
            logits=logits,
            past_key_values=cache if _given(use_cache, self.config.use_cache) else None,
            decoder_hidden_states=(ending.word_vectors, *ending.layer_states) if output_hidden_states else None,
            cross_attentions=attentions[:1] or None,
            encoder_last_hidden_state=encoder_outputs.last_hidden_state,
            encoder_hidden_states=encoder_outputs.hidden_states,
            encoder_attentions=encoder_outputs.attentions,
            knowledge_attentions=attentions[1] if len(attentions) > 1 else None,
        )
        return output if return_dict else output.to_tuple()

    def _encoder_loss(self, outputs: torch.Tensor, inputs: StoryInputs) -> torch.Tensor:
        """Phi_en: sum of the losses of sentences 2..K, in training from a sample of them; outputs [B, K, L + 1, D]."""
        # On the host, which has to know how many there are.
        targets = next_word_targets(inputs.host.word_ids, inputs.host.word_mask, self.config.eos_token_id)
        ratio = self.config.encoder_loss_sampling_ratio if self.training else 1.0
        sampled = subsample_targets(targets[:, 1:], ratio)
        softmax = self._sampled_softmax(outputs.device)
        outputs, on_device = outputs[:, 1:], sampled.to(outputs.device)
        return projected_cross_entropy(outputs, on_device, self.lm_head, self.dropout, softmax, sampled) / ratio

    def _with_encoder_loss(
        self, logits: torch.Tensor, decoder_input_ids: torch.Tensor, encoder_loss: torch.Tensor
    ) -> torch.Tensor:
        """Logits for a loss of the caller, by which every label bears its share of weight * Phi_en."""
        pad_id, end_id = self.config.pad_token_id, self.config.eos_token_id
        # Behind the start symbol and every word there is a label, behind the end symbol there is none.
        num_labels = ((decoder_input_ids != pad_id) & (decoder_input_ids != end_id)).sum().clamp(min=1)
        return add_to_every_word(logits, self.config.encoder_loss_weight * encoder_loss / num_labels, pad_id)

    def _sampled_softmax(self, device: torch.device) -> SampledSoftmax | None:
        """The classes that stand for the vocabulary in the loss of a batch; None for the full softmax."""
        num_classes, num_words = self.config.num_sampled_classes, self.config.vocab_size
        if not self.training or num_classes is None or num_classes >= num_words:
            return None
        return SampledSoftmax.sample(num_words, num_classes, device)

    def _next_word_logits(
        self, outputs: torch.Tensor, encoded: StoryEncoderOutput, step_mask: torch.Tensor | None
    ) -> torch.Tensor:
        """
        Logits of the next word [B, T, V], or [B, T, V + slots] if words can be copied, from what it is predicted from
        [B, T, D]; 0 at steps that were not read.
        """
        outputs = self.dropout(outputs)
        logits = self.lm_head(outputs)  # W_0 s_t + b_0
        places, forms = self._offers(outputs, encoded)
        if forms is not None:
            forms = forms[0], boost_forms(logits, *forms)
        if offers := [pair for pair in (places, forms) if pair is not None]:
            words, scores = zip(*offers, strict=True)
            num_slots = self.config.num_output_words - self.config.vocab_size
            logits = extend_logits(logits, torch.cat(scores, dim=2), torch.cat(words, dim=1), num_slots)
        return logits if step_mask is None else logits.masked_fill(~step_mask.unsqueeze(2).to(logits.device), 0.0)

    def _offers(self, outputs: torch.Tensor, encoded: StoryEncoderOutput) -> tuple[Offers | None, Offers | None]:
        """Words of the story [B, M] and psi_c [B, T, M], then forms of tails [B, Q] and psi_R [B, T, Q]."""
        copies, tails = encoded.copy_memory, encoded.tail_memory
        places = forms = None
        if copies is not None:
            places = copies.ids, CopyMechanism.score_positions(outputs, copies)
        if tails is not None:
            scores = self.encoder.tail_pointer.score_triples(outputs, tails)
            forms = tails.ids.flatten(1), form_scores(scores, tails.ids.unsqueeze(1))
        return places, forms

    @torch.no_grad()
    def word_sources(self, labels: torch.LongTensor, encoder_outputs: Any = None, **inputs: Any) -> WordSources:
        """
        Split the probability of each word of an ending exactly into what the vocabulary, the places of the story and
        its triples contribute.

        Args:
            labels (`torch.LongTensor` of shape `[B, T]`): The endings, as in `forward`; all is 0 at ignored ones.
            encoder_outputs ([`StoryEncoderOutput`], *optional*): What the encoder made of `inputs`, if known.
            inputs: The story's tensors, as in `forward`.
        """
        labels = self.output_columns(labels)
        story = prepare_story_inputs(self.config, **inputs, ending=(labels,))
        encoded = self.encoder.encode(story)[0] if encoder_outputs is None else encoder_outputs
        # Endings that were generated may be longer than those to learn from: `max_ending_length` is no limit here.
        word_ids, (host_labels,) = self.prepare_decoder_input_ids_from_labels(labels), story.host.ending
        host_ids = self.prepare_decoder_input_ids_from_labels(host_labels)
        word_ids = self._decoder_inputs(word_ids, None, encoded, HostEnding(None, host_ids, None, None))
        ending, _ = self._decode(word_ids, decoder_step_mask(word_ids, None, host_labels), encoded, None)
        outputs = self.dropout(ending.outputs)
        logits = upcast(self.lm_head(outputs))
        places, forms = self._offers(outputs, encoded)
        if forms is not None:
            forms = forms[0], boost_forms(logits, *forms)
        return split_probabilities(logits, places, forms, encoded.tail_memory, labels, story.triple_mask.shape)

    @torch.no_grad()
    def rank_endings(self, labels: torch.LongTensor, **inputs: Any) -> RankerOutput:
        """
        Score several endings of each story with the ending ranker.

        Args:
            labels (`torch.LongTensor` of shape `[B, C, T]`): The endings with their end symbols, -100 at padding.
            inputs: The stories' tensors, as in `forward`.
        """
        if self.ranker is None:
            raise ValueError("This model has no ending ranker: `config.ranker_size` is None.")
        log_probabilities = ending_log_probabilities(self, labels, **inputs)
        names = ("input_ids", "attention_mask", "copy_ids")
        words = {name: inputs[name] for name in names if name in inputs}
        scores = self.ranker(**ranker_inputs(self.config, labels, **words), log_probabilities=log_probabilities)
        return RankerOutput(scores, log_probabilities)

    def output_columns(self, ids: torch.LongTensor | None) -> torch.LongTensor | None:
        """
        Columns of the logits for `labels` or generated ids, to be gathered from logits: the ids themselves, but for
        words out of the vocabulary, whose ids spell them.
        """
        return None if ids is None or not isinstance(ids, torch.Tensor) else output_columns(self.config, ids)

    def prepare_decoder_input_ids_from_labels(self, labels: torch.LongTensor) -> torch.LongTensor:
        """What the decoder reads to predict `labels`: the start symbol, then all but the last."""
        start = labels.new_full((labels.shape[0], 1), self.config.decoder_start_token_id)
        shifted = labels[:, :-1].masked_fill(labels[:, :-1] == IGNORED, self.config.pad_token_id)
        return torch.cat((start, shifted), dim=1)

    def _decoder_inputs(
        self,
        decoder_input_ids: torch.LongTensor | None,
        labels: torch.LongTensor | None,
        encoder_outputs: StoryEncoderOutput,
        host: HostEnding,
    ) -> torch.LongTensor:
        batch_size = encoder_outputs.state_hidden.shape[0]
        if labels is not None:
            check_target_ids(self.config, "labels", labels, host.labels, batch_size)
            if encoder_outputs.copy_memory is not None:
                check_oov_labels(host.labels, host.place_ids, self.config.vocab_size)
        if decoder_input_ids is None:
            if labels is None:
                raise ValueError(
                    "Give `labels` or `decoder_input_ids`, or let `generate()` write the ending. To smooth labels, "
                    "`Trainer` needs `data_collator=DataCollatorForSeq2Seq(tokenizer, model=model)`."
                )
            return self.prepare_decoder_input_ids_from_labels(labels)
        check_target_ids(self.config, "decoder_input_ids", decoder_input_ids, host.decoder_input_ids, batch_size)
        if labels is not None and labels.shape != decoder_input_ids.shape:
            raise ValueError(
                f"`labels` {tuple(labels.shape)} and `decoder_input_ids` {tuple(decoder_input_ids.shape)} "
                "must have one shape."
            )
        return decoder_input_ids

    def _decode(
        self,
        word_ids: torch.LongTensor,
        step_mask: torch.Tensor | None,
        encoded: StoryEncoderOutput,
        cache: RecurrentCache | None,
    ) -> tuple[RecurrenceOutput, RecurrentCache]:
        """Read the words of the ending so far, from the cache's state or, at the start, from the encoder's."""
        cache = RecurrentCache() if cache is None else cache
        if not hasattr(cache, "hidden"):
            raise ValueError(f"`past_key_values` must be a `RecurrentCache`; got {type(cache).__name__}.")
        state = encoded.state if cache.hidden is None else unstack_state(cache.hidden, cache.cell)
        ending = self.encoder.decode(word_ids, state, encoded.memory, step_mask, encoded.copy_memory)
        cache.update_state(ending.state, num_new_words=word_ids.shape[1])
        return ending, cache

    def _losses(
        self,
        outputs: torch.Tensor,
        encoded: StoryEncoderOutput,
        logits: torch.Tensor | None,
        labels: torch.LongTensor | None,
        host_labels: torch.LongTensor | None,
        encoder_loss: torch.Tensor | None,
        num_items_in_batch: torch.Tensor | int | None,
    ) -> dict[str, torch.Tensor]:
        """Phi = Phi_de + weight * Phi_en, and both parts."""
        if labels is None:
            return {}
        num_words = num_items_in_batch
        if num_words is None:
            # An ending without any label has loss 0, not 0 / 0.
            num_words = (labels != IGNORED).sum().clamp(min=1)
        softmax = self._sampled_softmax(outputs.device)
        if logits is not None:
            ending_loss = cross_entropy_sum(logits, labels)
        elif encoded.copy_memory is None and encoded.tail_memory is None:
            ending_loss = projected_cross_entropy(outputs, labels, self.lm_head, self.dropout, softmax, host_labels)
        else:
            outputs = self.dropout(outputs)
            offers = self._offers(outputs, encoded)
            ending_loss = pointer_loss(outputs, labels, self.lm_head, *offers, softmax, host_labels)
        ending_loss = ending_loss / num_words
        if encoder_loss is None:
            return {"loss": ending_loss, "ending_loss": ending_loss}
        encoder_loss = encoder_loss / num_words
        loss = ending_loss + self.config.encoder_loss_weight * encoder_loss
        return {"loss": loss, "ending_loss": ending_loss, "encoder_loss": encoder_loss}

    def generate(
        self,
        inputs: torch.Tensor | None = None,
        generation_config: GenerationConfig | None = None,
        logits_processor: LogitsProcessorList | None = None,
        **kwargs: Any,
    ):
        """
        [`~transformers.GenerationMixin.generate`], which see for all arguments. The unknown word, padding and the
        start symbol are never produced, whatever the decoding strategy.
        """
        # generate() refuses masks of more than two dimensions; the encoder takes sentences and words run together.
        mask = kwargs.get("attention_mask")
        if mask is not None and mask.ndim == 3:
            kwargs["attention_mask"] = mask.flatten(1)
        if (encoded := kwargs.get("encoder_outputs")) is not None:
            # A copy, because generate() repeats the rows for beams and samples in place.
            kwargs["encoder_outputs"] = type(encoded)(**encoded)
        check_generation_settings(self, generation_config, {"inputs": inputs, **kwargs})
        check_arguments(generation_config or self.generation_config, kwargs)
        generation_config, kwargs = with_max_length(generation_config, kwargs)
        generation_config, kwargs = self._stop_at_strings(generation_config, kwargs)
        if not self.config.copy:
            return self._generate(inputs, generation_config, logits_processor, **kwargs)
        copy_ids = kwargs.get("copy_ids")
        if kwargs.get("decoder_input_ids") is not None:
            kwargs["decoder_input_ids"] = self.output_columns(kwargs["decoder_input_ids"])
        if (allowed := kwargs.get("prefix_allowed_tokens_fn")) is not None:
            kwargs["prefix_allowed_tokens_fn"] = self._allowed_columns(allowed, copy_ids)
        if copy_ids is not None and kwargs.get("streamer") is not None:
            kwargs["streamer"] = NamingStreamer(kwargs["streamer"], lambda ids: self._named_ids(ids, copy_ids))
        generated = self._generate(inputs, generation_config, logits_processor, **kwargs)
        if copy_ids is None:
            return generated
        if isinstance(generated, torch.Tensor):
            return self._named_ids(generated, copy_ids)
        generated.sequences = self._named_ids(generated.sequences, copy_ids)
        return generated

    def _stop_at_strings(
        self, config: GenerationConfig | None, arguments: dict[str, Any]
    ) -> tuple[GenerationConfig | None, dict[str, Any]]:
        """`stop_strings` as a criterion that decodes: transformers' own is for pieces of words."""
        own = config or self.generation_config
        strings = arguments.pop("stop_strings", None) or own.stop_strings
        if not strings:
            # Decoding methods of transformers would hand it on to forward.
            unused = () if arguments.get("custom_generate") else ("tokenizer",)
            return config, {name: value for name, value in arguments.items() if name not in unused}
        if arguments.get("tokenizer") is None:
            raise ValueError("`stop_strings` needs the `tokenizer`, too: `generate(..., tokenizer=tokenizer)`.")
        if own.stop_strings:
            config = copy.deepcopy(own)
            config.stop_strings = None
        copy_ids = arguments.get("copy_ids") if self.config.copy else None
        to_named = None if copy_ids is None else lambda ids: self._named_ids(ids, copy_ids)
        stop = StopAtStrings(strings, arguments.pop("tokenizer"), to_named)
        return config, {**arguments, "stopping_criteria": [*(arguments.get("stopping_criteria") or ()), stop]}

    def _allowed_columns(
        self, allowed: Callable[[int, torch.Tensor], Iterable[int]], copy_ids: torch.Tensor | None
    ) -> Callable[[int, torch.Tensor], list[int]]:
        """`prefix_allowed_tokens_fn` that is given and gives ids of words, as one for columns of the logits."""

        def columns(row: int, ids: torch.Tensor) -> list[int]:
            if copy_ids is not None:
                ids = self._named_ids(ids[None], copy_ids[row : row + 1])[0]
            return self.output_columns(torch.tensor(list(allowed(row, ids)), dtype=torch.long)).tolist()

        return columns

    def _named_ids(self, ids: torch.Tensor, copy_ids: torch.Tensor) -> torch.Tensor:
        """What was generated, with ids that spell the words out of the vocabulary."""
        # A method of `custom_generate` may have called `generate()`, so that the ids spell words already.
        return to_named_ids(self.output_columns(ids), copy_ids, self.config.vocab_size, self.config.num_copy_slots)

    def _generate(
        self,
        inputs: torch.Tensor | None,
        generation_config: GenerationConfig | None,
        logits_processor: LogitsProcessorList | None,
        **kwargs: Any,
    ):
        """The same with columns of the logits for ids."""
        suppressed = [self.config.unk_token_id, self.config.pad_token_id, self.config.bos_token_id]
        suppress = SuppressSpecialTokens(suppressed, device=self._generation_device(inputs, kwargs))
        configs = (generation_config, self.generation_config, self.config)
        given = (kwargs.get("eos_token_id"), *(config and config.eos_token_id for config in configs))
        ends = next(end for end in given if end is not None)
        padders, stoppers = for_ended_prompts(kwargs.get("decoder_input_ids"), ends, self.config.pad_token_id)
        if stoppers:
            kwargs["stopping_criteria"] = [*(kwargs.get("stopping_criteria") or ()), *stoppers]
        processors = LogitsProcessorList([suppress, *(logits_processor or []), *padders])
        return super().generate(inputs, generation_config, processors, **kwargs)

    def _generation_device(self, inputs: torch.Tensor | None, settings: dict[str, Any]) -> torch.device:
        """The device of the weights or, where those are offloaded, of what is given."""
        given = (inputs, settings.get("input_ids"), settings.get("attention_mask"))
        tensor = next((tensor for tensor in given if tensor is not None), None)
        return self.device if tensor is None or self.device.type != "meta" else tensor.device

    def prepare_inputs_for_generation(
        self,
        input_ids: torch.LongTensor,
        next_sequence_length: int | None = None,
        is_first_iteration: bool | None = False,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """The words that the cache has not read yet; all else but labels as it is."""
        kwargs.pop("labels", None)
        cache = kwargs.get("past_key_values")
        if cache is not None and (num_read := cache.get_seq_length()):
            if num_read >= input_ids.shape[1]:
                raise ValueError(
                    f"`past_key_values` has read {num_read} words, `decoder_input_ids` has {input_ids.shape[1]}: give "
                    "all words so far, at least one of which the cache has not read."
                )
            cache.repeat_rows(len(input_ids))
            input_ids = input_ids[:, num_read:]
        # Weights that wait elsewhere stand on no device.
        if (device := self.device).type != "meta":
            input_ids = input_ids.to(device)
        if is_first_iteration:
            check_prompts(kwargs.get("decoder_attention_mask"))
        else:
            # One that was given is for the words of the prompt.
            kwargs.pop("decoder_attention_mask", None)
        return {**kwargs, "decoder_input_ids": input_ids.contiguous()}

    def compute_transition_scores(
        self,
        sequences: torch.Tensor,
        scores: tuple[torch.Tensor, ...],
        beam_indices: torch.Tensor | None = None,
        normalize_logits: bool = False,
    ) -> torch.Tensor:
        """
        [`~transformers.GenerationMixin.compute_transition_scores`], which takes the number of scores from
        `config.vocab_size`: where words can be copied there are more.
        """
        if not self.config.copy:
            return super().compute_transition_scores(sequences, scores, beam_indices, normalize_logits)
        sequences = self.output_columns(sequences)
        steps = torch.stack(scores)  # [T, rows, V + slots]
        steps = steps.log_softmax(dim=-1) if normalize_logits else steps
        if beam_indices is None:
            beam_indices = torch.arange(steps.shape[1], device=steps.device)[:, None].expand(-1, len(scores))
        is_finished = beam_indices < 0
        length = int((~is_finished).sum(dim=1).max())
        rows, is_finished = beam_indices[:, :length].clamp(min=0), is_finished[:, :length]
        chosen = steps[torch.arange(length, device=steps.device), rows, sequences[:, -length:]]
        return chosen.masked_fill(is_finished, 0.0)

    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        # generate() would else hand over a cache of attention layers.
        return False

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path, *args, **kwargs):
        """
        [`~transformers.PreTrainedModel.from_pretrained`], for weights in safetensors only: pickled ones, which can run
        code, are never read. Weights that a file lacks, or that are not finite, are refused.
        """
        if kwargs.get("use_safetensors") is False or kwargs.get("weights_only") is False:
            raise ValueError("`use_safetensors` and `weights_only` must be true: pickled weights are never read.")
        with error_context(pretrained_model_name_or_path):
            check_adapters(pretrained_model_name_or_path, kwargs)
            check_shards(pretrained_model_name_or_path, kwargs)
            check_size_of_files(cls.config_class, pretrained_model_name_or_path, kwargs)
            settings = {**kwargs, "use_safetensors": True, "output_loading_info": True}
            model, information = super().from_pretrained(pretrained_model_name_or_path, *args, **settings)
            if pretrained_model_name_or_path is not None:
                check_missing_keys(information, kwargs)
            check_finite(model)
        return (model, information) if kwargs.get("output_loading_info") else model

    def save_pretrained(self, save_directory, *args, **kwargs):
        # Here, because writing endings needs no pipeline, whose imports take a second.
        from .pipeline_incremental_encoder import CUSTOM_PIPELINES

        # A class carries the name of one Auto class only; the second is added here, anew at every save.
        auto_map = dict(getattr(self.config, "auto_map", None) or {})
        auto_map["AutoModelForSeq2SeqLM"] = f"{type(self).__module__.rsplit('.', 1)[-1]}.{type(self).__name__}"
        self.config.auto_map = auto_map
        # Anew, because transformers puts classes in place of their names when it makes a pipeline.
        self.config.custom_pipelines = {task: dict(entry) for task, entry in CUSTOM_PIPELINES.items()}
        self.config.library_versions = library_versions()
        return super().save_pretrained(save_directory, *args, **kwargs)


class SuppressSpecialTokens(SuppressTokensLogitsProcessor):
    """A type of its own: of two processors of one type, generate() would drop the one for `suppress_tokens`."""


class NamingStreamer(BaseStreamer):
    """Passes words on to a streamer by ids that spell them."""

    def __init__(self, streamer: BaseStreamer, name_ids: Callable[[torch.Tensor], torch.Tensor]):
        self._streamer, self._name_ids = streamer, name_ids

    def put(self, value: torch.Tensor) -> None:
        # The prompt comes as rows, every word as one number a row.
        self._streamer.put(self._name_ids(value.view(len(value), -1)).view_as(value))

    def end(self) -> None:
        self._streamer.end()


def _given(value: bool | None, default: bool) -> bool:
    return default if value is None else value


IncrementalEncoderForEndingGeneration.register_for_auto_class("AutoModel")
