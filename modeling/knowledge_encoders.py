"""From the triples of a word to its graph vector: graph attention and contextual attention."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import nn
from torch.nn import functional

from .configuration_incremental_encoder import IncrementalEncoderConfig
from .masked_softmax import masked_softmax
from .plain_modules import is_plain
from .tensor_values import has_values
from .word_rows import Graphs, KnownWords, distinct_graphs, find_known_words


@dataclass
class TripleReadings:
    """What an encoder knows of a story's triples before any sentence is read."""

    # Of each sentence, the words that have triples; `triples` are rows of `memories` where there are any.
    sentences: list[KnownWords]
    # Contextual attention: vectors [U, G] of the distinct triples.
    memories: torch.Tensor | None = None
    # Graph attention: graph vectors are known already.
    graphs: list[Graphs] = field(default_factory=list)


class KnowledgeEncoder(nn.Module):
    """
    Base of both encoders: a graph vector is a weighted sum over the triples of a word. A triple that stands in many
    places, as the triples of frequent words do, is read once.
    """

    def __init__(self, config: IncrementalEncoderConfig):
        super().__init__()
        self.embed_relations = nn.Embedding(config.num_relations, config.embedding_size)

    def read_triples(
        self, triple_ids: torch.Tensor, triple_mask: torch.Tensor, embed_tokens: nn.Embedding
    ) -> TripleReadings:
        """triple_ids [B, K, L, N, 3] (head word, relation, tail word) -> what can be known before the sentences."""
        triples, index = distinct_triples(
            triple_ids, triple_mask, self.embed_relations.num_embeddings, embed_tokens.num_embeddings
        )
        sentences = [find_known_words(*parts) for parts in zip(index.unbind(1), triple_mask.unbind(1), strict=True)]
        return self.encode(triples, sentences, embed_tokens)

    def forward(
        self, readings: TripleReadings, sentence: int, states: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """
        Graph vectors [B, L, G] of the words of one sentence, and the weights [B, L, N] of the triples inside each.
        A word without triples has the zero vector. `states` [B, L, D] are the hidden states at the words.
        """
        graphs = self.graphs(readings, sentence, states)
        return graphs.words.spread(graphs.vectors), graphs.words.spread(graphs.weights)

    def encode(self, triples: torch.Tensor, sentences: list[KnownWords], embed_tokens: nn.Embedding) -> TripleReadings:
        """Read the distinct triples [U, 3]."""
        raise NotImplementedError

    def graphs(self, readings: TripleReadings, sentence: int, states: torch.Tensor) -> Graphs:
        """Graph vectors of those words of a sentence that have triples."""
        raise NotImplementedError


class GraphAttention(KnowledgeEncoder):
    """The graph vector is the sum of `[head ; tail]`, weighted by how well the relation fits the two."""

    def __init__(self, config: IncrementalEncoderConfig):
        super().__init__(config)
        size = config.embedding_size
        self.head_projection = nn.Linear(size, size, bias=False)
        self.relation_projection = nn.Linear(size, size, bias=False)
        # As in multi-source attention.
        self.score_scale = size**-0.5
        self.tail_projection = nn.Linear(size, size, bias=False)

    def encode(self, triples: torch.Tensor, sentences: list[KnownWords], embed_tokens: nn.Embedding) -> TripleReadings:
        heads, relations, tails = triples.unbind(-1)
        heads, relations, tails = embed_tokens(heads), self.embed_relations(relations), embed_tokens(tails)
        pairs = (self.head_projection(heads) + self.tail_projection(tails)).tanh()
        scores = (self.relation_projection(relations) * pairs).sum(dim=-1) * self.score_scale
        # No sentence is needed: a graph vector is made once for all words that have the same triples.
        index, mask, which = distinct_graphs(
            torch.cat([known.triples for known in sentences]), torch.cat([known.mask for known in sentences])
        )
        weights = masked_softmax(scores[index], mask)
        vectors = weighted_sum(weights, functional.embedding(index, torch.cat((heads, tails), dim=-1)))
        rows = which.split([known.words.num_rows for known in sentences])
        graphs = [
            Graphs(known.words, vectors.index_select(0, row), weights.index_select(0, row))
            for known, row in zip(sentences, rows, strict=True)
        ]
        return TripleReadings(sentences, graphs=graphs)

    def graphs(self, readings: TripleReadings, sentence: int, states: torch.Tensor) -> Graphs:
        return readings.graphs[sentence]


class ContextualAttention(KnowledgeEncoder):
    """The graph vector is the sum of the triples' memories, weighted by the hidden state at the word itself."""

    def __init__(self, config: IncrementalEncoderConfig):
        super().__init__(config)
        size = config.embedding_size
        # Cells, not `nn.GRU`: that one can't be compiled, and a triple has but three elements.
        self.forward_reader = nn.GRUCell(size, size)
        self.backward_reader = nn.GRUCell(size, size)
        self.memory_scorer = nn.Linear(config.graph_size, config.hidden_size, bias=False)
        # As in multi-source attention.
        self.score_scale = config.hidden_size**-0.5

    def encode(self, triples: torch.Tensor, sentences: list[KnownWords], embed_tokens: nn.Embedding) -> TripleReadings:
        heads, relations, tails = triples.unbind(-1)
        heads, relations, tails = embed_tokens(heads), self.embed_relations(relations), embed_tokens(tails)
        forward = backward = torch.zeros_like(heads)
        for element in (heads, relations, tails):
            forward = self.forward_reader(element, forward)
        for element in (tails, relations, heads):
            backward = self.backward_reader(element, backward)
        return TripleReadings(sentences, memories=torch.cat((forward, backward), dim=-1))

    def graphs(self, readings: TripleReadings, sentence: int, states: torch.Tensor) -> Graphs:
        known = readings.sentences[sentence]
        memories = functional.embedding(known.triples, readings.memories)  # [R, N, G]
        weights = masked_softmax(self._scores(memories, known.words.pick(states)), known.mask)
        return Graphs(known.words, weighted_sum(weights, memories), weights)

    def _scores(self, memories: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
        """Scores [R, N] of memories [R, N, G] for words whose hidden states are [R, D]."""
        if not is_plain(self.memory_scorer, nn.Linear):
            return (self.memory_scorer(memories) @ states.unsqueeze(-1)).squeeze(-1) * self.score_scale
        # Projecting the state once a word is cheaper than projecting every memory.
        queries = states @ self.memory_scorer.weight * self.score_scale
        return (memories @ queries.unsqueeze(-1)).squeeze(-1)


def weighted_sum(weights: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
    """[R, N] and [R, N, G] -> [R, G]."""
    return (weights.unsqueeze(-2) @ vectors).squeeze(-2)


def distinct_triples(
    triple_ids: torch.Tensor, triple_mask: torch.Tensor, num_relations: int, num_words: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Distinct triples [U, 3] and, for every place [...], the row of its triple; any row where none is."""
    if not has_values(triple_ids):
        # How many are distinct depends on the data.
        index = torch.arange(triple_mask.numel(), device=triple_ids.device)
        return (triple_ids * triple_mask.unsqueeze(-1)).view(-1, 3), index.view(triple_mask.shape)
    heads, relations, tails = triple_ids[triple_mask].unbind(-1)
    keys, rows = torch.unique((heads * num_relations + relations) * num_words + tails, return_inverse=True)
    index = torch.zeros_like(triple_mask, dtype=rows.dtype).masked_scatter_(triple_mask, rows)
    pairs, tails = keys // num_words, keys % num_words
    return torch.stack((pairs // num_relations, pairs % num_relations, tails), dim=-1), index


def build_knowledge_encoder(config: IncrementalEncoderConfig) -> KnowledgeEncoder | None:
    encoders = {"graph_attention": GraphAttention, "contextual_attention": ContextualAttention}
    return None if config.knowledge is None else encoders[config.knowledge](config)
