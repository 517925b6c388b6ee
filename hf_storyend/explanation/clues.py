"""
The chain of context clues: from the ending back through the sentences of the story.

How much of the ending can be followed back to a word, its *relevance*, is made from the attentions. Every word of the
ending, its end symbol left out, starts with the same share. A sentence passes the relevance of its words on to the
words that they read,

    r(source word) ~ sum over reader words of r(reader word) * (state attention + knowledge attention),

made to sum to 1 in each sentence. Attention to the graph of a word without triples reads nothing and does not count.
In incremental encoding the ending reads the last sentence, that one the sentence before it, and so on to the first.
In the other systems the ending reads all sentences at once: there is no chain, relevance sums to 1 over the story.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from .result import AttentionMatrix, ClueLink, ReadWord, SentenceClues

MAX_CLUES = 3
# What gets less than this was hardly read, even if nothing got more.
MIN_LINK = 0.1


class ClueFinder:
    """
    Relevance of words, and the links between those that have most of it.

    Args:
        sentences: The words of all sentences, and of the ending behind them, its end symbol as an empty string.
        attentions: All matrices between them.
        has_triples: For each word of the story, whether its graph holds anything; None without knowledge.
        is_chain: Whether each sentence reads the one before it.
    """

    def __init__(
        self,
        sentences: Sequence[Sequence[str]],
        attentions: Sequence[AttentionMatrix],
        has_triples: Sequence[Sequence[bool]] | None,
        is_chain: bool,
    ):
        self._sentences, self._is_chain = sentences, is_chain
        self._matrices = [(matrix, _useful_weights(matrix, has_triples)) for matrix in attentions]
        self._relevance = self._chained() if is_chain else self._direct()

    def clues(self) -> list[SentenceClues]:
        """The words of every sentence of the story by relevance, last sentence first."""
        return [SentenceClues(number, self._ranked(number)) for number in sorted(self._relevance, reverse=True)]

    def links(self) -> list[ClueLink]:
        """For each clue word, the word that it read most: one link by states and, if there are graphs, one by them."""
        ending = len(self._sentences)
        found = [link for position in self._ending_clues() for link in self._links_of(ending, position)]
        if self._is_chain:
            for number in range(ending - 1, 1, -1):
                found += [link for position in self._top(number) for link in self._links_of(number, position)]
        return found

    def _chained(self) -> dict[int, torch.Tensor]:
        relevance = {}
        reader = self._ending_relevance()
        for source in range(len(self._sentences) - 1, 0, -1):
            read = self._read(source + 1, source, reader)
            reader = relevance[source] = read / read.sum()
        return relevance

    def _direct(self) -> dict[int, torch.Tensor]:
        ending = len(self._sentences)
        reads = {source: self._read(ending, source, self._ending_relevance()) for source in range(1, ending)}
        total = sum(float(read.sum()) for read in reads.values())
        return {source: read / total for source, read in reads.items()}

    def _read(self, reader: int, source: int, relevance: torch.Tensor) -> torch.Tensor:
        between = [weights for matrix, weights in self._matrices if (matrix.reader, matrix.source) == (reader, source)]
        return relevance @ torch.stack(between).sum(dim=0)

    def _ending_relevance(self) -> torch.Tensor:
        shares = torch.tensor([float(bool(word)) for word in self._sentences[-1]])
        # An ending without any word still has its end symbol.
        shares = shares if shares.any() else torch.ones_like(shares)
        return shares / shares.sum()

    def _ranked(self, number: int) -> list[ReadWord]:
        rows = zip(self._sentences[number - 1], self._relevance[number].tolist(), strict=True)
        words = [ReadWord(number, position, word, weight) for position, (word, weight) in enumerate(rows, start=1)]
        return sorted(words, key=lambda read: -read.weight)

    def _top(self, number: int) -> list[int]:
        """Positions, from 1, of the clue words of a sentence of the story; marks are none."""
        return [read.position for read in self._ranked(number) if is_word(read.word)][:MAX_CLUES]

    def _ending_clues(self) -> list[int]:
        """Positions, from 1, of the words of the ending that point most clearly at one word of the story."""
        ending = len(self._sentences)
        strongest = torch.stack(
            [weights.max(dim=1).values for matrix, weights in self._matrices if matrix.reader == ending]
        )
        order = strongest.max(dim=0).values.argsort(descending=True, stable=True).tolist()
        words = self._sentences[-1]
        return sorted([place + 1 for place in order if is_word(words[place])][:MAX_CLUES])

    def _links_of(self, reader: int, position: int) -> list[ClueLink]:
        best: dict[str, ClueLink] = {}
        for matrix, weights in self._matrices:
            if matrix.reader != reader:
                continue
            weight, place = weights[position - 1].max(dim=0)
            is_better = matrix.kind not in best or best[matrix.kind].weight < weight
            if weight >= MIN_LINK and is_better:
                link = ClueLink(matrix.kind, reader, position, matrix.source, int(place) + 1, float(weight))
                best[matrix.kind] = link
        return list(best.values())


def is_word(text: str) -> bool:
    """Whether it is a word or a number, and no mark."""
    return any(character.isalnum() for character in text)


def _useful_weights(matrix: AttentionMatrix, has_triples: Sequence[Sequence[bool]] | None) -> torch.Tensor:
    weights = torch.tensor(matrix.weights)
    if matrix.kind == "state" or has_triples is None:
        return weights
    return weights * torch.tensor(has_triples[matrix.source - 1])
