"""A slow, obvious reference of story ending generation with incremental encoding and multi-source attention.

The equations are written out one story, one sentence, one word and one triple at a time: no batching, no padding, no
masks and no recurrent modules. Three models are covered: incremental encoding alone (IE), with graph attention
(IE+MSA(GA)) and with contextual attention (IE+MSA(CA)). Everything is made of plain tensor operations on a dict of
named weights, so that autograd gives the gradients.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

GRAPH_ATTENTION = "graph_attention"
CONTEXTUAL_ATTENTION = "contextual_attention"

Weights = Mapping[str, Tensor]
Triple = tuple[int, int, int]  # head word id, relation id, tail word id
Story = tuple[list[list[int]], list[list[list[Triple]]], list[int]]  # sentences, graphs, ending
State = list[tuple[Tensor, Tensor]]  # (h, c) of every LSTM layer, the top layer last


@dataclass
class ReferenceStory:
    """What one story gives; K sentences of l_i words, and an ending of T targets."""

    logits: list[Tensor]  # T vectors [V], the ending
    state_attention: list[Tensor]  # T vectors [l_K], alpha_h of the decoder
    knowledge_attention: list[Tensor]  # T vectors [l_K], alpha_x of the decoder; empty without knowledge
    encoder_state_attention: list[list[Tensor]]  # [K][l_i + 1] vectors [l_{i-1}]; empty for the first sentence
    encoder_knowledge_attention: list[list[Tensor]]  # the same for alpha_x; K empty lists without knowledge
    triple_attention: list[list[Tensor]]  # [K][l_i] vectors [N_x], alpha_R; K empty lists without knowledge
    hidden_states: list[list[Tensor]]  # [K][l_i + 1] top-layer h, the start symbol's first
    phi_en: Tensor
    phi_de: Tensor


@dataclass
class Reading:
    """What reading one sequence of words gives, a list entry per step."""

    state: State  # after the last step
    hidden: list[Tensor] = field(default_factory=list)
    outputs: list[Tensor] = field(
        default_factory=list
    )  # what words are predicted from, and the next sentence attends to
    alpha_h: list[Tensor] = field(default_factory=list)
    alpha_x: list[Tensor] = field(default_factory=list)


def weighted_sum(alpha: Tensor, vectors: Sequence[Tensor]) -> Tensor:
    """sum_k alpha_k v_k, of at least one vector."""
    total = torch.zeros_like(vectors[0])
    for k in range(len(vectors)):
        total = total + alpha[k] * vectors[k]
    return total


def count_layers(weights: Weights) -> int:
    n = 0
    while f"lstm.step_gates.{n}.weight" in weights:
        n += 1
    return n


def initial_state(weights: Weights) -> State:
    """The story starts from h = c = 0 in every layer."""
    size = weights["lstm.word_gates.weight"].shape[0] // 4
    zeros = weights["lstm.word_gates.weight"].new_zeros(size)
    return [(zeros, zeros) for _ in range(count_layers(weights))]


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
) -> Reading:
    """Run the LSTM over the inputs, attending to the preceding sentence where there is one."""
    reading = Reading(state)
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


def run_story(
    weights: Weights,
    sentences: list[list[int]],
    graphs: list[list[list[Triple]]],
    ending: list[int],
    *,
    knowledge: str | None,
    start_id: int,
    end_id: int,
    attend_empty_graphs: bool = True,
) -> ReferenceStory:
    """Encode the sentences one behind the other, then read the ending; the graphs are ignored without knowledge."""
    if knowledge not in (GRAPH_ATTENTION, CONTEXTUAL_ATTENTION, None):
        raise ValueError(f"unknown knowledge: {knowledge!r}")
    zero = weights["lm_head.bias"].new_zeros(())
    result = ReferenceStory([], [], [], [], [], [], [], phi_en=zero, phi_de=zero)
    state = initial_state(weights)
    preceding_states: list[Tensor] | None = None
    preceding_graphs: list[Tensor | None] | None = None

    for i, sentence in enumerate(sentences):
        reading = read_sequence(weights, [start_id, *sentence], state, preceding_states, preceding_graphs)
        result.hidden_states.append(reading.hidden)
        result.encoder_state_attention.append(reading.alpha_h)
        result.encoder_knowledge_attention.append(reading.alpha_x)

        # Phi_en = sum_{i >= 2} sum_j -log P(x_j)
        if i >= 1:
            for h, target in zip(reading.outputs, [*sentence, end_id], strict=True):
                result.phi_en = result.phi_en + nll(output_logits(weights, h), target)

        state = reading.state
        preceding_states = reading.outputs[1:]  # at the words, without the start symbol
        alphas_R: list[Tensor] = []
        if knowledge is not None:
            preceding_graphs, alphas_R = graph_vectors(
                weights, graphs[i], reading.hidden[1:], knowledge, attend_empty_graphs
            )
        result.triple_attention.append(alphas_R)

    reading = read_sequence(weights, [start_id, *ending[:-1]], state, preceding_states, preceding_graphs)
    result.state_attention = reading.alpha_h
    result.knowledge_attention = reading.alpha_x

    # Phi_de = sum_t -log P(y_t)
    for s, target in zip(reading.outputs, ending, strict=True):
        logits = output_logits(weights, s)
        result.logits.append(logits)
        result.phi_de = result.phi_de + nll(logits, target)
    return result


def run_batch(
    weights: Weights,
    stories: Sequence[Story],
    *,
    knowledge: str | None,
    start_id: int,
    end_id: int,
    encoder_loss_weight: float = 1.0,
    **reading: bool,
) -> tuple[Tensor, Tensor, Tensor, list[ReferenceStory]]:
    """(loss, ending_loss, encoder_loss, results); both losses are per ending target of the whole batch."""
    results: list[ReferenceStory] = []
    sum_de = weights["lm_head.bias"].new_zeros(())
    sum_en = weights["lm_head.bias"].new_zeros(())
    n = 0
    for sentences, graphs, ending in stories:
        result = run_story(
            weights, sentences, graphs, ending, knowledge=knowledge, start_id=start_id, end_id=end_id, **reading
        )
        results.append(result)
        sum_de = sum_de + result.phi_de
        sum_en = sum_en + result.phi_en
        n += len(ending)
    ending_loss = sum_de / n
    encoder_loss = sum_en / n
    loss = ending_loss + encoder_loss_weight * encoder_loss
    return loss, ending_loss, encoder_loss, results
