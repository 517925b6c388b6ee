"""
Lift: how many times likelier a word is in an ending if another one stands in the context, smoothed for rare words.

    p(t|h) = (n + k1 p_near(t|h) + k2 lift_r p(t)) / (n_h + k1 + k2),    lift = p(t|h) / p(t),    p(t) = n_t / N

n counts stories with h in the context and t new in the ending, n_h those with h, n_t those with t. p_near is the same
share pooled over the heads whose word vectors are nearest, lift_r the mean lift of the relation's pairs. k1 and k2 are
numbers of pseudo-stories. For rare tails, of which they would expect fewer than k0 = `MIN_EXPECTED`, both are scaled
up to expect as many: one story is little evidence then.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .lemma_pairs import LemmaPairs
from .story_counts import StoryCounts

NEIGHBOUR_STORIES = 60.0  # k1
RELATION_STORIES = 20.0  # k2
MIN_EXPECTED = 0.2  # k0
# Pseudo-stories in which tails are as likely as anywhere, in the pool of neighbours.
_POOL_STORIES = 10.0
_NUM_NEIGHBOURS = 8
_MIN_NEIGHBOUR_STORIES = 150
_MIN_COSINE = 0.35
_COSINE_SCALE = 6.0
_CHUNK_SIZE = 2048


@dataclass(frozen=True)
class Neighbours:
    """Nearest heads of every lemma, [lemmas, 8], and their weights, which add up to 1; 0 where there are fewer."""

    lemmas: np.ndarray
    weights: np.ndarray

    @classmethod
    def nearest(cls, vectors: np.ndarray, contexts: np.ndarray) -> Neighbours:
        """
        Find the lemmas of enough stories with the largest cosine.

        Args:
            vectors: Word vector of every lemma, [lemmas, E]; zero where there is none.
            contexts: Number of stories of every lemma.
        """
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit = (vectors / np.maximum(norms, 1e-12)).astype(np.float32)
        known = np.flatnonzero((contexts >= _MIN_NEIGHBOUR_STORIES) & (norms[:, 0] > 0))
        lemmas = np.zeros((len(vectors), _NUM_NEIGHBOURS), dtype=np.int64)
        weights = np.zeros((len(vectors), _NUM_NEIGHBOURS))
        num_nearest = min(_NUM_NEIGHBOURS, len(known))
        for start in range(0, len(vectors) if num_nearest else 0, _CHUNK_SIZE):
            rows = np.arange(start, min(start + _CHUNK_SIZE, len(vectors)))
            cosines = unit[rows] @ unit[known].T
            cosines[rows[:, None] == known] = -1.0
            nearest = np.argpartition(-cosines, num_nearest - 1, axis=1)[:, :num_nearest]
            values = np.take_along_axis(cosines, nearest, axis=1).astype(np.float64)
            lemmas[rows, :num_nearest] = known[nearest]
            weights[rows, :num_nearest] = np.where(values > _MIN_COSINE, np.exp(_COSINE_SCALE * values), 0.0)
        return cls(lemmas, weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-12))


class PairLift:
    """
    Smoothed probability and lift of pairs of lemmas.

    Args:
        pairs: Pairs and their relations.
        counts: Counts over the training stories.
        neighbours: Nearest heads by word vector, if there are vectors.
    """

    def __init__(self, pairs: LemmaPairs, counts: StoryCounts, neighbours: Neighbours | None = None):
        self._pairs, self._counts, self._neighbours = pairs, counts, neighbours
        self._together = counts.pairs(pairs.heads, pairs.tails).astype(np.float64)
        self._heads = counts.contexts[pairs.heads].astype(np.float64)
        self._tails = counts.endings[pairs.tails].astype(np.float64)
        self._relation_lifts = self._mean_lifts()[pairs.relations]
        self._pool = self._neighbour_pool()
        self.probabilities, self.lifts = self._smoothed(np.arange(len(pairs)))

    def without(self, stories: np.ndarray, pairs: np.ndarray) -> np.ndarray:
        """
        Return lifts of pairs counted without a story that has the pair; 0 if no other ending has the tail.

        Args:
            stories, pairs: Stories, and positions of pairs that occur in them.
        """
        in_pool = np.zeros(len(pairs))
        if self._neighbours is not None:
            heads = self._pairs.heads[pairs]
            for place in range(_NUM_NEIGHBOURS):
                weights = self._neighbours.weights[heads, place]
                lemmas = self._neighbours.lemmas[heads, place]
                in_pool += weights * self._counts.has_context(stories, lemmas)
        return self._smoothed(pairs, 1.0, in_pool)[1]

    def _mean_lifts(self) -> np.ndarray:
        """The mean lift of every relation: how often its pairs occur by how often they would by chance."""
        size = len(self._pairs.names)
        expected = self._heads * self._tails / max(self._counts.num_stories, 1)
        by_chance = np.bincount(self._pairs.relations, expected, minlength=size)
        together = np.bincount(self._pairs.relations, self._together, minlength=size)
        return np.where(by_chance > 0, together / np.maximum(by_chance, 1e-12), 1.0)

    def _neighbour_pool(self) -> tuple[np.ndarray, np.ndarray]:
        """Weighted numbers of stories of the neighbours: those that have the tail, and all."""
        together, stories = np.zeros(len(self._pairs)), np.zeros(len(self._pairs))
        if self._neighbours is None:
            return together, stories
        for place in range(_NUM_NEIGHBOURS):
            weights = self._neighbours.weights[self._pairs.heads, place]
            lemmas = self._neighbours.lemmas[self._pairs.heads, place]
            together += weights * self._counts.pairs(lemmas, self._pairs.tails)
            stories += weights * self._counts.contexts[lemmas]
        return together, stories

    def _smoothed(
        self, pairs: np.ndarray, num_left_out: float = 0.0, in_pool: np.ndarray | float = 0.0
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return p(t|h) and the lift, with `num_left_out` stories less, of which the pool counts `in_pool`."""
        tail_shares = (self._tails[pairs] - num_left_out) / max(self._counts.num_stories - num_left_out, 1.0)
        together, stories = (part[pairs] for part in self._pool)
        has_pool = stories > 0
        near = (together - in_pool + _POOL_STORIES * tail_shares) / (stories - in_pool + _POOL_STORIES)
        near_stories = np.where(has_pool, NEIGHBOUR_STORIES, 0.0)
        pseudo_stories = near_stories + RELATION_STORIES
        scale = np.maximum(1.0, MIN_EXPECTED / np.maximum(pseudo_stories * tail_shares, 1e-12))
        prior = near_stories * near + RELATION_STORIES * self._relation_lifts[pairs] * tail_shares
        num_stories = self._heads[pairs] - num_left_out + scale * pseudo_stories
        probabilities = (self._together[pairs] - num_left_out + scale * prior) / num_stories
        lifts = np.where(tail_shares > 0, probabilities / np.maximum(tail_shares, 1e-12), 0.0)
        return probabilities, lifts
