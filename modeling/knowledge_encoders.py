"""From the triples of a word to its graph vector: graph attention and contextual attention."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from .configuration_incremental_encoder import IncrementalEncoderConfig
from .masked_softmax import masked_softmax
from .tensor_values import has_values


@dataclass
class TripleReadings:
    """
    What an encoder knows of a story's triples before any sentence is read. A triple that stands in many places, as the
    triples of frequent words do, is read once: `vectors` and `scores` have a row a distinct triple.
    """

    vectors: torch.Tensor  # [U, G]
    scores: torch.Tensor | None  # [U]; None if the score depends on the sentence
    index: torch.Tensor  # [B, K, L, N], row of each triple
    mask: torch.Tensor  # [B, K, L, N]


class KnowledgeEncoder(nn.Module):
    """Base of both encoders: a graph vector is a weighted sum over the triples of a word."""

    def __init__(self, config: IncrementalEncoderConfig):
        super().__init__()
        self.embed_relations = nn.Embedding(config.num_relations, config.embedding_size)

    def read_triples(
        self, triple_ids: torch.Tensor, triple_mask: torch.Tensor, embed_tokens: nn.Embedding
    ) -> TripleReadings:
        """triple_ids [B, K, L, N, 3] (head word, relation, tail word) -> readings of the distinct triples."""
        triples, index = distinct_triples(
            triple_ids * triple_mask.unsqueeze(-1), self.embed_relations.num_embeddings, embed_tokens.num_embeddings
        )
        heads, relations, tails = triples.unbind(-1)
        vectors, scores = self.encode(embed_tokens(heads), self.embed_relations(relations), embed_tokens(tails))
        return TripleReadings(vectors, scores, index, triple_mask)

    def forward(
        self, readings: TripleReadings, sentence: int, states: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """
        Graph vectors [B, L, G] of the words of one sentence, and the weights [B, L, N] of the triples inside each.
        A word without triples has the zero vector. `states` [B, L, D] are the hidden states at the words.
        """
        index = readings.index[:, sentence]
        vectors = functional.embedding(index, readings.vectors)  # [B, L, N, G]
        if readings.scores is None:
            scores = self.score_in_context(vectors, states)
        else:
            scores = functional.embedding(index, readings.scores.unsqueeze(-1)).squeeze(-1)
        weights = masked_softmax(scores, readings.mask[:, sentence])
        return (weights.unsqueeze(-2) @ vectors).squeeze(-2), weights

    def encode(
        self, heads: torch.Tensor, relations: torch.Tensor, tails: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Vectors of triples [U, E] x 3 -> one vector a triple [U, G] and, if it needs no context, its score [U]."""
        raise NotImplementedError

    def score_in_context(self, vectors: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
        """Scores [B, L, N] of triple vectors [B, L, N, G] for words whose hidden states are [B, L, D]."""
        raise NotImplementedError


class GraphAttention(KnowledgeEncoder):
    """The graph vector is the sum of `[head ; tail]`, weighted by how well the relation fits the two."""

    def __init__(self, config: IncrementalEncoderConfig):
        super().__init__(config)
        size = config.embedding_size
        self.head_projection = nn.Linear(size, size, bias=False)
        self.relation_projection = nn.Linear(size, size, bias=False)
        # A score sums over all numbers of a projected vector; this keeps it near 1 before training.
        self.relation_projection.init_std = 1 / size
        self.tail_projection = nn.Linear(size, size, bias=False)

    def encode(
        self, heads: torch.Tensor, relations: torch.Tensor, tails: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        pairs = (self.head_projection(heads) + self.tail_projection(tails)).tanh()
        scores = (self.relation_projection(relations) * pairs).sum(dim=-1)
        return torch.cat((heads, tails), dim=-1), scores


class ContextualAttention(KnowledgeEncoder):
    """The graph vector is the sum of the triples' memories, weighted by the hidden state at the word itself."""

    def __init__(self, config: IncrementalEncoderConfig):
        super().__init__(config)
        size = config.embedding_size
        # Cells, not `nn.GRU`: that one can't be compiled, and a triple has but three elements.
        self.forward_reader = nn.GRUCell(size, size)
        self.backward_reader = nn.GRUCell(size, size)
        self.memory_scorer = nn.Linear(config.graph_size, config.hidden_size, bias=False)

    def encode(self, heads: torch.Tensor, relations: torch.Tensor, tails: torch.Tensor) -> tuple[torch.Tensor, None]:
        forward = backward = torch.zeros_like(heads)
        for element in (heads, relations, tails):
            forward = self.forward_reader(element, forward)
        for element in (tails, relations, heads):
            backward = self.backward_reader(element, backward)
        return torch.cat((forward, backward), dim=-1), None

    def score_in_context(self, vectors: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
        # Projecting the state once a word is cheaper than projecting every memory.
        queries = states @ self.memory_scorer.weight
        return (vectors @ queries.unsqueeze(-1)).squeeze(-1)


def distinct_triples(
    triple_ids: torch.Tensor, num_relations: int, num_words: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Distinct triples [U, 3] and, for every place [...], the row of its triple."""
    shape = triple_ids.shape[:-1]
    if not has_values(triple_ids):
        # How many are distinct depends on the data.
        return triple_ids.reshape(-1, 3), torch.arange(shape.numel(), device=triple_ids.device).reshape(shape)
    heads, relations, tails = triple_ids.unbind(-1)
    keys, index = torch.unique((heads * num_relations + relations) * num_words + tails, return_inverse=True)
    pairs, tails = keys // num_words, keys % num_words
    return torch.stack((pairs // num_relations, pairs % num_relations, tails), dim=-1), index


def build_knowledge_encoder(config: IncrementalEncoderConfig) -> KnowledgeEncoder | None:
    encoders = {"graph_attention": GraphAttention, "contextual_attention": ContextualAttention}
    return None if config.knowledge is None else encoders[config.knowledge](config)
