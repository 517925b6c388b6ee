"""A slow, obvious reference of the systems beside incremental encoding, and of copying.

One story, one sentence, one word at a time, as in `reference.py`, with whose small functions it shares no state: plain
tensor operations on a dict of named weights, so that autograd gives the gradients.

- Seq2Seq: the sentences as one sequence, each with a start symbol before it; a decoder that is fed the context vector
  of the step before and predicts from Luong's attentional vector.
- HLSTM: an LSTM over the words of each sentence, one over the sentences, attention to both levels; with graph
  attention or contextual attention also to the graphs of all words.
- Copying (CopyNet), with any of the encoders.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from reference import Story, Triple, Weights, attend, graph_vectors, lstm_step, nll, read_sequence
from torch import Tensor

State = list[tuple[Tensor, Tensor]]
# Sentences, graphs, ending, and the words of the sentences as they can be copied.
CopyStory = tuple[list[list[int]], list[list[list[Triple]]], list[int], list[list[int]]]


@dataclass
class Encoded:
    """A story, read."""

    state: State  # where the ending starts from
    words: list[list[Tensor]]  # [K][l_i] top-layer states at words
    graphs: list[list[Tensor]]  # [K][l_i] graph vectors; K empty lists without knowledge
    sentences: list[Tensor] = field(default_factory=list)  # K states of the sentence level, for HLSTM
    phi_en: Tensor | None = None  # for incremental encoding


@dataclass
class ReferenceEnding:
    """What one story gives; an ending of T targets."""

    probabilities: list[Tensor]  # T vectors [V, or V + slots]
    attention: list[Tensor]  # T vectors over all words of the story; the last sentence's for incremental encoding
    knowledge_attention: list[Tensor]  # the same over their graphs; empty without knowledge
    phi_de: Tensor
    phi_en: Tensor | None


def zero_state(weights: Weights, prefix: str) -> State:
    size = weights[f"{prefix}.word_gates.weight"].shape[0] // 4
    zeros = weights[f"{prefix}.word_gates.weight"].new_zeros(size)
    num_layers = sum(name.startswith(f"{prefix}.step_gates.") and name.endswith("weight") for name in weights)
    return [(zeros, zeros) for _ in range(num_layers)]


def step_without_context(weights: Weights, prefix: str, x: Tensor, state: State) -> State:
    """h_j = LSTM(h_{j-1}, x_j), all layers."""
    new_state: State = []
    for m, (h_prev, c_prev) in enumerate(state):
        W = weights[f"{prefix}.step_gates.{m}.weight"]
        if m == 0:
            gates = weights[f"{prefix}.word_gates.weight"] @ x + weights[f"{prefix}.word_gates.bias"] + W @ h_prev
        else:
            gates = W @ torch.cat([new_state[m - 1][0], h_prev]) + weights[f"{prefix}.step_gates.{m}.bias"]
        i, f, g, o = gates.chunk(4)
        c = torch.sigmoid(f) * c_prev + torch.sigmoid(i) * torch.tanh(g)
        new_state.append((torch.sigmoid(o) * torch.tanh(c), c))
    return new_state


def step_with_context(weights: Weights, x: Tensor, context: Tensor, state: State) -> State:
    """The decoder's s_t = LSTM(s_{t-1}, x_t, c_t): the reference's step, with x in place of a word's vector."""
    return lstm_step({**weights, "embed_tokens.weight": x.unsqueeze(0)}, 0, context, state)


def read_plain(weights: Weights, prefix: str, inputs: Sequence[Tensor], state: State) -> tuple[list[Tensor], State]:
    states: list[Tensor] = []
    for x in inputs:
        state = step_without_context(weights, prefix, x, state)
        states.append(state[-1][0])
    return states, state


def encode_sequence(weights: Weights, story: Story, start_id: int) -> Encoded:
    e = weights["embed_tokens.weight"]
    state, words = zero_state(weights, "story_lstm"), []
    for sentence in story[0]:
        states, state = read_plain(weights, "story_lstm", [e[start_id], *(e[x] for x in sentence)], state)
        words.append(states[1:])
    return Encoded(state, words, [[] for _ in words])


def encode_hierarchy(
    weights: Weights, story: Story, start_id: int, knowledge: str | None, attend_empty_graphs: bool
) -> Encoded:
    e = weights["embed_tokens.weight"]
    if knowledge:
        # Where `graph_vector` looks for the size of a graph vector.
        weights = {**weights, "attention.knowledge_scorer.weight": weights["attention.words.knowledge_scorer.weight"]}
    words, graphs, vectors = [], [], []
    for sentence, sentence_graphs in zip(story[0], story[1], strict=True):
        inputs = [e[start_id], *(e[x] for x in sentence)]
        states, _ = read_plain(weights, "word_lstm", inputs, zero_state(weights, "word_lstm"))
        words.append(states[1:])
        vectors.append(states[-1])
        graphs.append(
            graph_vectors(weights, sentence_graphs, states[1:], knowledge, attend_empty_graphs)[0] if knowledge else []
        )
    sentences, state = read_plain(weights, "sentence_lstm", vectors, zero_state(weights, "sentence_lstm"))
    return Encoded(state, words, graphs, sentences)


def encode_incrementally(
    weights: Weights, story: Story, start_id: int, end_id: int, knowledge: str | None, attend_empty_graphs: bool
) -> Encoded:
    """As in `reference.py`, but the states of all sentences are kept."""
    state, words, graphs = zero_state(weights, "lstm"), [], []
    phi_en = weights["lm_head.bias"].new_zeros(())
    for i, sentence in enumerate(story[0]):
        before = (words[-1], graphs[-1] if knowledge else None) if words else (None, None)
        reading = read_sequence(weights, [start_id, *sentence], state, *before)
        state = reading.state
        words.append(reading.outputs[1:])
        states = reading.hidden[1:]
        graphs.append(
            graph_vectors(weights, story[1][i], states, knowledge, attend_empty_graphs)[0] if knowledge else []
        )
        for h, target in zip(reading.outputs, [*sentence, end_id], strict=True) if i else ():
            phi_en = phi_en + nll(weights["lm_head.weight"] @ h + weights["lm_head.bias"], target)
    return Encoded(state, words, graphs, phi_en=phi_en)


def context_of_sequence(weights: Weights, query: Tensor, story: Encoded) -> tuple[Tensor, Tensor, None]:
    """c = W_l sum_m alpha_m h_m + b_l over all words of the story."""
    words = [h for sentence in story.words for h in sentence]
    c, alpha = attend(query, weights["attention.state_scorer.weight"], words)
    return weights["attention.merge.weight"] @ c + weights["attention.merge.bias"], alpha, None


def context_of_hierarchy(weights: Weights, query: Tensor, story: Encoded) -> tuple[Tensor, Tensor, Tensor | None]:
    """c = W_l [sum gamma alpha h ; sum gamma beta g] + b_l + W_v sum gamma u."""
    c_u, gamma = attend(query, weights["attention.sentence_scorer.weight"], story.sentences)
    c_h, c_x = torch.zeros_like(query), None
    all_alpha, all_beta = [], []
    for i, states in enumerate(story.words):
        c, alpha = attend(query, weights["attention.words.state_scorer.weight"], states)
        c_h = c_h + gamma[i] * c
        all_alpha.append(gamma[i] * alpha)
        if story.graphs[i]:
            c, beta = attend(query, weights["attention.words.knowledge_scorer.weight"], story.graphs[i])
            c_x = gamma[i] * c if c_x is None else c_x + gamma[i] * c
            all_beta.append(gamma[i] * beta)
    sources = c_h if c_x is None else torch.cat([c_h, c_x])
    merged = weights["attention.words.merge.weight"] @ sources + weights["attention.words.merge.bias"]
    context = merged + weights["attention.sentence_merge.weight"] @ c_u
    return context, torch.cat(all_alpha), torch.cat(all_beta) if all_beta else None


def context_of_last_sentence(weights: Weights, query: Tensor, story: Encoded) -> tuple[Tensor, Tensor, Tensor | None]:
    """c = W_l [c_h ; c_x] + b_l."""
    sources, alpha = attend(query, weights["attention.state_scorer.weight"], story.words[-1])
    beta = None
    if story.graphs[-1]:
        c_x, beta = attend(query, weights["attention.knowledge_scorer.weight"], story.graphs[-1])
        sources = torch.cat([sources, c_x])
    return weights["attention.merge.weight"] @ sources + weights["attention.merge.bias"], alpha, beta


CONTEXTS = {
    "sequence": context_of_sequence,
    "hierarchical": context_of_hierarchy,
    "incremental": context_of_last_sentence,
}


@dataclass
class Copies:
    """The words of a story that can be copied, place by place."""

    ids: list[int]
    states: list[Tensor]
    num_slots: int


def selective_read(weights: Weights, word: int, copies: Copies) -> Tensor:
    """W_z times the mean of the states at the places of a word."""
    found = [h for x, h in zip(copies.ids, copies.states, strict=True) if x == word]
    if not found:
        return weights["embed_tokens.weight"].new_zeros(weights["embed_tokens.weight"].shape[1])
    return weights["copying.reader.weight"] @ (sum(found[1:], found[0]) / len(found))


def copy_probabilities(weights: Weights, logits: Tensor, s: Tensor, copies: Copies) -> Tensor:
    """p(y) = (exp psi_g(y) + sum_m exp psi_c(m)) / Z over V + slots."""
    masses = list(torch.exp(logits).unbind()) + [logits.new_zeros(()) for _ in range(copies.num_slots)]
    for x, h in zip(copies.ids, copies.states, strict=True):
        masses[x] = masses[x] + torch.exp(s @ torch.tanh(weights["copying.scorer.weight"] @ h))
    masses = torch.stack(masses)
    return masses / masses.sum()


def run_ending(
    weights: Weights,
    encoder: str,
    story: Encoded,
    ending: list[int],
    copies: Copies | None,
    *,
    start_id: int,
    unk_id: int,
) -> ReferenceEnding:
    """Read the ending and predict it, word by word."""
    e = weights["embed_tokens.weight"]
    state = story.state
    result = ReferenceEnding([], [], [], weights["lm_head.bias"].new_zeros(()), story.phi_en)
    for word, target in zip([start_id, *ending[:-1]], ending, strict=True):
        x = e[word if word < len(e) else unk_id]
        if copies is not None:
            x = x + selective_read(weights, word, copies)
        context, alpha, beta = CONTEXTS[encoder](weights, state[-1][0], story)
        state = step_with_context(weights, x, context, state)
        s = state[-1][0]
        if "attentional.weight" in weights:
            # h~ = tanh(W_l c(s) + b_l + W_d s)
            context, alpha, beta = CONTEXTS[encoder](weights, s, story)
            s = torch.tanh(context + weights["attentional.weight"] @ s)
        logits = weights["lm_head.weight"] @ s + weights["lm_head.bias"]
        p = torch.softmax(logits, dim=0) if copies is None else copy_probabilities(weights, logits, s, copies)
        result.probabilities.append(p)
        result.attention.append(alpha)
        if beta is not None:
            result.knowledge_attention.append(beta)
        result.phi_de = result.phi_de - torch.log(p[target])
    return result


def copy_states(encoder: str, story: Encoded) -> list[Tensor]:
    """What places are scored by: the word's state, for HLSTM together with its sentence's."""
    if encoder != "hierarchical":
        return [h for sentence in story.words for h in sentence]
    return [torch.cat([h, u]) for words, u in zip(story.words, story.sentences, strict=True) for h in words]


def run_system(
    weights: Weights,
    encoder: str,
    knowledge: str | None,
    stories: Sequence[CopyStory],
    *,
    num_slots: int | None,
    start_id: int,
    end_id: int,
    unk_id: int,
    attend_empty_graphs: bool = True,
) -> tuple[Tensor, list[ReferenceEnding]]:
    """(loss, endings) of a system; the loss is per ending target of the whole batch. `num_slots` None: no copying."""
    endings, num_targets = [], 0
    total = weights["lm_head.bias"].new_zeros(())
    for sentences, graphs, ending, copied_words in stories:
        story = (sentences, graphs, ending)
        if encoder == "sequence":
            encoded = encode_sequence(weights, story, start_id)
        elif encoder == "hierarchical":
            encoded = encode_hierarchy(weights, story, start_id, knowledge, attend_empty_graphs)
        else:
            encoded = encode_incrementally(weights, story, start_id, end_id, knowledge, attend_empty_graphs)
        copies = None
        if num_slots is not None:
            ids = [x for sentence in copied_words for x in sentence]
            copies = Copies(ids, copy_states(encoder, encoded), num_slots)
        result = run_ending(weights, encoder, encoded, ending, copies, start_id=start_id, unk_id=unk_id)
        endings.append(result)
        total = total + result.phi_de + (0 if result.phi_en is None else result.phi_en)
        num_targets += len(ending)
    return total / num_targets, endings
