"""
Clues: relevance of the story's words for the ending, propagated back through the attentions.

Relevance starts at the words of the ending, equal for each of them but its end symbol. A sentence passes the relevance
of its words on to the words that they attend to,

    r(key word) ~ sum over query words of r(query word) * (state attention + knowledge attention),

normalised to sum to 1 in each sentence. Attention to the graph of a word without triples does not count.

In incremental encoding the ending attends to the last sentence, that one to the sentence before it, and so on to the
first. In the other systems the ending attends to all sentences at once: there is no chain, and relevance sums to 1
over the story.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from .result import AttentionMatrix, ClueLink, GraphTriple, SentenceClues, WeightedWord

# Clue words of a sentence, from which links start.
MAX_CLUE_WORDS = 3
# A lower weight is no link, even if it is the highest of its word.
MIN_LINK_WEIGHT = 0.1


class ClueFinder:
    """
    Computes the relevance of words, and the links between the most relevant ones.

    Args:
        sentences: Words of each sentence and, last, of the ending, with an empty string as its end symbol.
        attentions: All attention matrices between them.
        graphs: Triples of each word of the story; None if the model has no knowledge.
        is_incremental: Whether each sentence attends to the one before it.
    """

    def __init__(
        self,
        sentences: Sequence[Sequence[str]],
        attentions: Sequence[AttentionMatrix],
        graphs: Sequence[Sequence[Sequence[GraphTriple]]] | None,
        is_incremental: bool,
    ):
        self._sentences, self._is_incremental = sentences, is_incremental
        self._ending = len(sentences)
        self._matrices = [(matrix, _without_empty_graphs(matrix, graphs)) for matrix in attentions]
        self._relevance = self._chained_relevance() if is_incremental else self._direct_relevance()

    def clues(self) -> list[SentenceClues]:
        """Return the words of every sentence of the story by relevance, last sentence first."""
        return [SentenceClues(number, self._ranked(number)) for number in sorted(self._relevance, reverse=True)]

    def links(self) -> list[ClueLink]:
        """Return, for each clue word, its highest state attention and its highest knowledge attention."""
        found = [link for position in self._ending_clue_words() for link in self._links_of(self._ending, position)]
        if self._is_incremental:
            for number in range(self._ending - 1, 1, -1):
                found += [link for position in self._clue_words(number) for link in self._links_of(number, position)]
        return found

    def _chained_relevance(self) -> dict[int, torch.Tensor]:
        """Relevance in each sentence, propagated from the sentence behind it."""
        relevance = {}
        current = self._ending_relevance()
        for key in range(self._ending - 1, 0, -1):
            propagated = self._propagate(current, key + 1, key)
            current = relevance[key] = propagated / propagated.sum()
        return relevance

    def _direct_relevance(self) -> dict[int, torch.Tensor]:
        """Relevance in all sentences, propagated from the ending."""
        start = self._ending_relevance()
        propagated = {key: self._propagate(start, self._ending, key) for key in range(1, self._ending)}
        total = sum(float(relevance.sum()) for relevance in propagated.values())
        return {key: relevance / total for key, relevance in propagated.items()}

    def _ending_relevance(self) -> torch.Tensor:
        shares = torch.tensor([float(bool(word)) for word in self._sentences[-1]])
        # An ending without any word still has its end symbol.
        shares = shares if shares.any() else torch.ones_like(shares)
        return shares / shares.sum()

    def _propagate(self, relevance: torch.Tensor, query: int, key: int) -> torch.Tensor:
        attentions = [
            weights
            for matrix, weights in self._matrices
            if (matrix.query_sentence, matrix.key_sentence) == (query, key)
        ]
        return relevance @ torch.stack(attentions).sum(dim=0)

    def _ranked(self, number: int) -> list[WeightedWord]:
        weights = self._relevance[number].tolist()
        words = [
            WeightedWord(number, position, word, weight)
            for position, (word, weight) in enumerate(zip(self._sentences[number - 1], weights, strict=True), start=1)
        ]
        return sorted(words, key=lambda word: -word.weight)

    def _clue_words(self, number: int) -> list[int]:
        """Positions, from 1, of the most relevant words of a sentence of the story."""
        return [word.position for word in self._ranked(number) if not _is_punctuation(word.word)][:MAX_CLUE_WORDS]

    def _ending_clue_words(self) -> list[int]:
        """Positions, from 1, of the ending's words with the highest attention to a single word."""
        highest = torch.stack(
            [weights.max(dim=1).values for matrix, weights in self._matrices if matrix.query_sentence == self._ending]
        )
        order = highest.max(dim=0).values.argsort(descending=True, stable=True).tolist()
        words = self._sentences[-1]
        return sorted([place + 1 for place in order if not _is_punctuation(words[place])][:MAX_CLUE_WORDS])

    def _links_of(self, query: int, position: int) -> list[ClueLink]:
        highest: dict[str, ClueLink] = {}
        for matrix, weights in self._matrices:
            if matrix.query_sentence != query:
                continue
            weight, place = weights[position - 1].max(dim=0)
            is_higher = matrix.kind not in highest or highest[matrix.kind].weight < weight
            if weight >= MIN_LINK_WEIGHT and is_higher:
                link = ClueLink(matrix.kind, query, position, matrix.key_sentence, int(place) + 1, float(weight))
                highest[matrix.kind] = link
        return list(highest.values())


def _is_punctuation(text: str) -> bool:
    return not any(character.isalnum() for character in text)


def _without_empty_graphs(
    matrix: AttentionMatrix, graphs: Sequence[Sequence[Sequence[GraphTriple]]] | None
) -> torch.Tensor:
    """Return the weights with zeros for the graphs of words without triples."""
    weights = torch.tensor(matrix.weights)
    if matrix.kind == "state" or graphs is None:
        return weights
    return weights * torch.tensor([bool(graph) for graph in graphs[matrix.key_sentence - 1]])
