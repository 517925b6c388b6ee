"""Slow reference of all systems: the equations in plain loops.

One story, one sentence, one word and one triple at a time: no batching, no padding, no masks and no recurrent modules.
Everything is made of plain tensor operations on a dict of named weights, so that autograd gives the gradients.

- IE: sentences one after the other, each attending to the one before it; with graph attention (GA) or contextual
  attention (CA) also to the graphs of its words. Sentences 2..K are supervised.
- Seq2Seq: the sentences as one sequence, each with a start symbol before it; a decoder that is fed the context vector
  of the step before.
- HLSTM: an LSTM over the words of each sentence, one over the sentences, attention to both levels; with GA or CA also
  to the graphs of all words.
- Copying (CopyNet), with any of the encoders, and pointing to the tails of triples.
- With weights of an attentional vector, words are predicted from it, and sentences of IE attend to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

GRAPH_ATTENTION = "graph_attention"
CONTEXTUAL_ATTENTION = "contextual_attention"

Weights = Mapping[str, Tensor]
Triple = tuple[int, int, int]  # head word id, relation id, tail word id
Story = tuple[list[list[int]], list[list[list[Triple]]], list[int]]  # sentences, graphs, ending
# A story and the words of its sentences as they can be copied.
CopyStory = tuple[list[list[int]], list[list[list[Triple]]], list[int], list[list[int]]]
State = list[tuple[Tensor, Tensor]]  # (h, c) of every LSTM layer, the top layer last


@dataclass
class EncodedStory:
    """A story of K sentences of l_i words, encoded."""

    state: State  # where the ending starts from
    words: list[list[Tensor]]  # [K][l_i] what is attended to: top-layer states at words, or attentional vectors
    graphs: list[list[Tensor | None]]  # [K][l_i] graph vectors; K empty lists without knowledge
    triple_attention: list[list[Tensor]]  # [K][l_i] vectors [N_x], alpha_R; K empty lists without knowledge
    sentences: list[Tensor] = field(default_factory=list)  # K states of the sentence level, in HLSTM
    # In incremental encoding.
    hidden_states: list[list[Tensor]] = field(default_factory=list)  # [K][l_i + 1], the start symbol's first
    state_attention: list[list[Tensor]] = field(default_factory=list)  # [K][l_i + 1] vectors [l_{i-1}]
    knowledge_attention: list[list[Tensor]] = field(default_factory=list)  # the same for alpha_x
    phi_en: Tensor | None = None


@dataclass
class EncodedSequence:
    """States and attention of one sequence of words, a list entry a step."""

    state: State  # after the last step
    hidden: list[Tensor] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)  # what words are predicted from
    alpha_h: list[Tensor] = field(default_factory=list)
    alpha_x: list[Tensor] = field(default_factory=list)


@dataclass
class ReferenceEnding:
    """The ending of one story, T targets."""

    story: EncodedStory
    logits: list[Tensor]  # T vectors [V], psi_g
    probabilities: list[Tensor]  # T vectors [V, or V + slots]
    attention: list[Tensor]  # T vectors over all words of the story; the last sentence's in incremental encoding
    knowledge_attention: list[Tensor]  # the same over their graphs; empty without knowledge
    phi_de: Tensor


def weighted_sum(alpha: Tensor, vectors: Sequence[Tensor]) -> Tensor:
    """sum_k alpha_k v_k, of at least one vector."""
    total = torch.zeros_like(vectors[0])
    for k in range(len(vectors)):
        total = total + alpha[k] * vectors[k]
    return total


def zero_state(weights: Weights, prefix: str) -> State:
    """h = c = 0 in every layer."""
    size = weights[f"{prefix}.word_gates.weight"].shape[0] // 4
    zeros = weights[f"{prefix}.word_gates.weight"].new_zeros(size)
    num_layers = sum(name.startswith(f"{prefix}.step_gates.") and name.endswith("weight") for name in weights)
    return [(zeros, zeros) for _ in range(num_layers)]


def lstm_step(weights: Weights, word_id: int, c_l: Tensor, state: State) -> State:
    """h_j = LSTM(h_{j-1}, e(x_j), c_l), all layers."""
    new_state: State = []
    for m, (h_prev, c_prev) in enumerate(state):
        W_step = weights[f"lstm.step_gates.{m}.weight"]
        if m == 0:
            e = weights["embed_tokens.weight"][word_id]
            gates = weights["lstm.word_gates.weight"] @ e + weights["lstm.word_gates.bias"]
            gates = gates + W_step @ torch.cat([c_l, h_prev])
        else:
            h_below = new_state[m - 1][0]
            gates = W_step @ torch.cat([h_below, h_prev]) + weights[f"lstm.step_gates.{m}.bias"]
        D = h_prev.shape[0]
        i, f, g, o = gates[:D], gates[D : 2 * D], gates[2 * D : 3 * D], gates[3 * D :]
        c = torch.sigmoid(f) * c_prev + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        new_state.append((h, c))
    return new_state


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


def gru_last_state(weights: Weights, inputs: Sequence[Tensor], direction: str) -> Tensor:
    """The state after the last of the inputs, read in the given order by the GRU of that direction."""
    W_ih = weights[f"knowledge.{direction}_reader.weight_ih"]
    W_hh = weights[f"knowledge.{direction}_reader.weight_hh"]
    b_ih = weights[f"knowledge.{direction}_reader.bias_ih"]
    b_hh = weights[f"knowledge.{direction}_reader.bias_hh"]
    H = W_hh.shape[1]
    h = W_hh.new_zeros(H)
    for x in inputs:
        from_x = W_ih @ x + b_ih
        from_h = W_hh @ h + b_hh
        reset = torch.sigmoid(from_x[:H] + from_h[:H])
        z = torch.sigmoid(from_x[H : 2 * H] + from_h[H : 2 * H])
        n = torch.tanh(from_x[2 * H :] + reset * from_h[2 * H :])
        h = (1 - z) * n + z * h
    return h


def graph_vector(weights: Weights, triples: Sequence[Triple], h_x: Tensor, knowledge: str) -> tuple[Tensor, Tensor]:
    """g(x) and alpha_R of one word, from its triples and the hidden state h_(x) at its position."""
    if not triples:
        G = weights["attention.knowledge_scorer.weight"].shape[1]
        return h_x.new_zeros(G), h_x.new_zeros(0)
    beta_R: list[Tensor] = []
    memories: list[Tensor] = []
    for head, relation, tail in triples:
        h = weights["embed_tokens.weight"][head]
        r = weights["knowledge.embed_relations.weight"][relation]
        t = weights["embed_tokens.weight"][tail]
        if knowledge == GRAPH_ATTENTION:
            W_h = weights["knowledge.head_projection.weight"]
            W_r = weights["knowledge.relation_projection.weight"]
            W_t = weights["knowledge.tail_projection.weight"]
            # beta_R = (W_r r)^T tanh(W_h h + W_t t), here and below with weights sqrt(size) times the paper's
            beta_R.append((W_r @ r) @ torch.tanh(W_h @ h + W_t @ t) / len(r) ** 0.5)
            memories.append(torch.cat([h, t]))
        else:
            # M_R = BiGRU(h, r, t)
            forward = gru_last_state(weights, [h, r, t], "forward")
            backward = gru_last_state(weights, [t, r, h], "backward")
            M_R = torch.cat([forward, backward])
            # beta_R = h_(x)^T W_c M_R
            beta_R.append(h_x @ (weights["knowledge.memory_scorer.weight"] @ M_R) / len(h_x) ** 0.5)
            memories.append(M_R)
    alpha_R = torch.softmax(torch.stack(beta_R), dim=0)
    return weighted_sum(alpha_R, memories), alpha_R


def graph_vectors(
    weights: Weights,
    graphs: Sequence[Sequence[Triple]],
    states: Sequence[Tensor],
    knowledge: str,
    attend_empty_graphs: bool = True,
) -> tuple[list[Tensor | None], list[Tensor]]:
    """g(x) and alpha_R of the words of a sentence; None for a graph that is not to be read."""
    pairs = [graph_vector(weights, triples, h_x, knowledge) for triples, h_x in zip(graphs, states, strict=True)]
    vectors = [g if triples or attend_empty_graphs else None for triples, (g, _) in zip(graphs, pairs, strict=True)]
    return vectors, [alpha_R for _, alpha_R in pairs]


def attend(query: Tensor, W: Tensor, vectors: Sequence[Tensor | None]) -> tuple[Tensor, Tensor]:
    """c = sum_k alpha_k v_k and alpha, with beta_k = query^T W v_k; both zero at what is None."""
    readable = [v for v in vectors if v is not None]
    if not readable:
        return query.new_zeros(W.shape[1]), query.new_zeros(len(vectors))
    beta = [query @ (W @ v) / len(query) ** 0.5 for v in readable]
    alpha = torch.softmax(torch.stack(beta), dim=0)
    places = torch.tensor([k for k, v in enumerate(vectors) if v is not None])
    return weighted_sum(alpha, readable), query.new_zeros(len(vectors)).index_copy(0, places, alpha)


def context(
    weights: Weights,
    query: Tensor,
    preceding_states: Sequence[Tensor] | None,
    preceding_graphs: Sequence[Tensor | None] | None,
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """c_l, alpha_h and alpha_x for a query h_{j-1} or s_{t-1}; c_l is zero where there is no preceding sentence."""
    if preceding_states is None:
        return torch.zeros_like(query), None, None
    sources, alpha_h = attend(query, weights["attention.state_scorer.weight"], preceding_states)
    alpha_x = None
    if preceding_graphs is not None:
        c_x, alpha_x = attend(query, weights["attention.knowledge_scorer.weight"], preceding_graphs)
        sources = torch.cat([sources, c_x])
    # c_l = W_l [c_h ; c_x] + b_l
    return weights["attention.merge.weight"] @ sources + weights["attention.merge.bias"], alpha_h, alpha_x


def read_sequence(
    weights: Weights,
    inputs: Sequence[int],
    state: State,
    preceding_states: Sequence[Tensor] | None,
    preceding_graphs: Sequence[Tensor | None] | None,
) -> EncodedSequence:
    """Run the LSTM over the inputs, attending to the preceding sentence where there is one."""
    reading = EncodedSequence(state)
    for word_id in inputs:
        c_l, alpha_h, alpha_x = context(weights, reading.state[-1][0], preceding_states, preceding_graphs)
        reading.state = lstm_step(weights, word_id, c_l, reading.state)
        h = reading.state[-1][0]
        reading.hidden.append(h)
        if "attentional.weight" in weights:
            # h~_j = tanh(c(h_j) + W_d h_j), with what the state after the step attends to
            c_l, alpha_h, alpha_x = context(weights, h, preceding_states, preceding_graphs)
            h = torch.tanh(c_l + weights["attentional.weight"] @ h)
        reading.outputs.append(h)
        reading.alpha_h += [] if alpha_h is None else [alpha_h]
        reading.alpha_x += [] if alpha_x is None else [alpha_x]
    return reading


def output_logits(weights: Weights, h: Tensor) -> Tensor:
    """W_0 h + b_0."""
    return weights["lm_head.weight"] @ h + weights["lm_head.bias"]


def nll(logits: Tensor, target: int) -> Tensor:
    """-log P(target)."""
    return torch.logsumexp(logits, dim=0) - logits[target]


def encode_incrementally(
    weights: Weights, story: Story, start_id: int, end_id: int, knowledge: str | None, attend_empty_graphs: bool
) -> EncodedStory:
    """Sentences one after the other, each from the state after the one before it and attending to its words."""
    encoded = EncodedStory(zero_state(weights, "lstm"), [], [], [], phi_en=weights["lm_head.bias"].new_zeros(()))
    for i, sentence in enumerate(story[0]):
        before = (encoded.words[-1], encoded.graphs[-1] if knowledge else None) if i else (None, None)
        reading = read_sequence(weights, [start_id, *sentence], encoded.state, *before)
        encoded.hidden_states.append(reading.hidden)
        encoded.state_attention.append(reading.alpha_h)
        encoded.knowledge_attention.append(reading.alpha_x)
        encoded.state = reading.state
        encoded.words.append(reading.outputs[1:])  # without the start symbol's
        add_graphs(encoded, weights, story[1][i], reading.hidden[1:], knowledge, attend_empty_graphs)

        # Phi_en = sum_{i >= 2} sum_j -log P(x_j)
        for h, target in zip(reading.outputs, [*sentence, end_id], strict=True) if i else ():
            encoded.phi_en = encoded.phi_en + nll(output_logits(weights, h), target)
    return encoded


def add_graphs(
    encoded: EncodedStory,
    weights: Weights,
    graphs: Sequence[Sequence[Triple]],
    states: Sequence[Tensor],
    knowledge: str | None,
    attend_empty_graphs: bool,
) -> None:
    """Graph vectors of a sentence from the states at its words, and the attention to its triples."""
    vectors, alphas = [], []
    if knowledge is not None:
        vectors, alphas = graph_vectors(weights, graphs, states, knowledge, attend_empty_graphs)
    encoded.graphs.append(vectors)
    encoded.triple_attention.append(alphas)


def encode_sequence(weights: Weights, story: Story, start_id: int) -> EncodedStory:
    e = weights["embed_tokens.weight"]
    encoded = EncodedStory(zero_state(weights, "story_lstm"), [], [], [])
    for sentence in story[0]:
        inputs = [e[start_id], *(e[x] for x in sentence)]
        states, encoded.state = read_plain(weights, "story_lstm", inputs, encoded.state)
        encoded.words.append(states[1:])
        encoded.graphs.append([])
    return encoded


def encode_hierarchy(
    weights: Weights, story: Story, start_id: int, knowledge: str | None, attend_empty_graphs: bool
) -> EncodedStory:
    e = weights["embed_tokens.weight"]
    if knowledge:
        # Where `graph_vector` looks for the size of a graph vector.
        weights = {**weights, "attention.knowledge_scorer.weight": weights["attention.words.knowledge_scorer.weight"]}
    encoded, vectors = EncodedStory([], [], [], []), []
    for sentence, graphs in zip(story[0], story[1], strict=True):
        inputs = [e[start_id], *(e[x] for x in sentence)]
        states, _ = read_plain(weights, "word_lstm", inputs, zero_state(weights, "word_lstm"))
        encoded.words.append(states[1:])
        vectors.append(states[-1])
        add_graphs(encoded, weights, graphs, states[1:], knowledge, attend_empty_graphs)
    start = zero_state(weights, "sentence_lstm")
    encoded.sentences, encoded.state = read_plain(weights, "sentence_lstm", vectors, start)
    return encoded


def context_of_sequence(weights: Weights, query: Tensor, story: EncodedStory) -> tuple[Tensor, Tensor, None]:
    """c = W_l sum_m alpha_m h_m + b_l over all words of the story."""
    words = [h for sentence in story.words for h in sentence]
    c, alpha = attend(query, weights["attention.state_scorer.weight"], words)
    return weights["attention.merge.weight"] @ c + weights["attention.merge.bias"], alpha, None


def context_of_hierarchy(weights: Weights, query: Tensor, story: EncodedStory) -> tuple[Tensor, Tensor, Tensor | None]:
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


def context_of_last_sentence(
    weights: Weights, query: Tensor, story: EncodedStory
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    return context(weights, query, story.words[-1], story.graphs[-1] or None)


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


@dataclass
class Tails:
    """The triples of a story that a word can come from, each with the encoder's output at its head."""

    triples: list[Triple]
    states: list[Tensor]
    weights: list[float]
    forms: list[list[int]]  # the words that each triple offers
    story: set[int]  # words that are not offered


def tail_score(weights: Weights, s: Tensor, tails: Tails, place: int) -> Tensor:
    """psi_R = s . tanh(W_t [e(h) ; e(r) ; e(t)] + b_t + W_u h_m) / sqrt(D) + g_0(s) + g_1(s) w_R."""
    e, r = weights["embed_tokens.weight"], weights["tail_pointer.embed_relations.weight"]
    head, relation, tail = tails.triples[place]
    elements = torch.cat([e[head], r[relation], e[tail]])
    key = weights["tail_pointer.triple_projection.weight"] @ elements
    key = key + weights["tail_pointer.triple_projection.bias"]
    key = torch.tanh(key + weights["tail_pointer.state_projection.weight"] @ tails.states[place])
    g = weights["tail_pointer.gate.weight"] @ s + weights["tail_pointer.gate.bias"]
    return s @ key / len(s) ** 0.5 + g[0] + g[1] * tails.weights[place]


def tail_masses(weights: Weights, logits: Tensor, s: Tensor, tails: Tails) -> list[list[tuple[int, Tensor]]]:
    """Of each triple, the words it offers and exp(psi_g + psi_R)."""
    return [
        [
            (form, torch.exp(logits[form] + tail_score(weights, s, tails, place)))
            for form in forms
            if form not in tails.story
        ]
        for place, forms in enumerate(tails.forms)
    ]


def probabilities(weights: Weights, logits: Tensor, s: Tensor, copies: Copies | None, tails: Tails | None) -> Tensor:
    """p(y) over V, or V + slots: what the vocabulary, the places of the story and the triples give to each word."""
    num_slots = 0 if copies is None else copies.num_slots
    masses = list(torch.exp(logits).unbind()) + [logits.new_zeros(()) for _ in range(num_slots)]
    for x, h in [] if copies is None else zip(copies.ids, copies.states, strict=True):
        masses[x] = masses[x] + torch.exp(s @ torch.tanh(weights["copying.scorer.weight"] @ h))
    for offers in [] if tails is None else tail_masses(weights, logits, s, tails):
        for form, mass in offers:
            masses[form] = masses[form] + mass
    masses = torch.stack(masses)
    return masses / masses.sum()


def run_ending(
    weights: Weights,
    encoder: str,
    story: EncodedStory,
    ending: list[int],
    copies: Copies | None,
    tails: Tails | None = None,
    *,
    start_id: int,
    unk_id: int,
) -> ReferenceEnding:
    """Read the ending and predict it, word by word."""
    e = weights["embed_tokens.weight"]
    state = story.state
    result = ReferenceEnding(story, [], [], [], [], weights["lm_head.bias"].new_zeros(()))
    for word, target in zip([start_id, *ending[:-1]], ending, strict=True):
        x = e[word if word < len(e) else unk_id]
        if copies is not None:
            x = x + selective_read(weights, word, copies)
        c, alpha, beta = CONTEXTS[encoder](weights, state[-1][0], story)
        state = step_with_context(weights, x, c, state)
        s = state[-1][0]
        if "attentional.weight" in weights:
            # h~ = tanh(W_l c(s) + b_l + W_d s)
            c, alpha, beta = CONTEXTS[encoder](weights, s, story)
            s = torch.tanh(c + weights["attentional.weight"] @ s)
        logits = output_logits(weights, s)
        p = probabilities(weights, logits, s, copies, tails)
        result.logits.append(logits)
        result.probabilities.append(p)
        result.attention.append(alpha)
        if beta is not None:
            result.knowledge_attention.append(beta)
        result.phi_de = result.phi_de - torch.log(p[target])
    return result


def copy_states(encoder: str, story: EncodedStory) -> list[Tensor]:
    """What places are scored by: the word's state, for HLSTM together with its sentence's."""
    if encoder != "hierarchical":
        return [h for sentence in story.words for h in sentence]
    return [torch.cat([h, u]) for words, u in zip(story.words, story.sentences, strict=True) for h in words]


@dataclass
class ReferenceLoss:
    """Losses per ending target of the whole batch; the encoder loss is None where the encoder is not supervised."""

    loss: Tensor
    ending_loss: Tensor
    encoder_loss: Tensor | None


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
    encoder_loss_weight: float = 1.0,
    triple_weight: Callable[[Triple], float] | None = None,
    tail_forms: Callable[[int], list[int]] | None = None,
) -> tuple[ReferenceLoss, list[ReferenceEnding]]:
    """
    Losses and endings of a batch of stories; `num_slots` None for a system without copying, `tail_forms` for one
    without a tail pointer.
    """
    if knowledge not in (GRAPH_ATTENTION, CONTEXTUAL_ATTENTION, None):
        raise ValueError(f"unknown knowledge: {knowledge!r}")
    endings = []
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
        tails = None
        if tail_forms is not None:
            places = zip([graph for rows in graphs for graph in rows], copy_states(encoder, encoded), strict=True)
            found = [(triple, h) for graph, h in places for triple in graph]
            tails = Tails(
                [triple for triple, _ in found],
                [h for _, h in found],
                [triple_weight(triple) for triple, _ in found],
                [tail_forms(triple[2]) for triple, _ in found],
                {x for sentence in sentences for x in sentence},
            )
        endings.append(run_ending(weights, encoder, encoded, ending, copies, tails, start_id=start_id, unk_id=unk_id))
    num_targets = sum(len(ending) for _, _, ending, _ in stories)
    ending_loss = sum(ending.phi_de for ending in endings) / num_targets
    if encoder != "incremental":
        return ReferenceLoss(ending_loss, ending_loss, None), endings
    encoder_loss = sum(ending.story.phi_en for ending in endings) / num_targets
    return ReferenceLoss(ending_loss + encoder_loss_weight * encoder_loss, ending_loss, encoder_loss), endings
