"""Which triples stay if there are more than a word may have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, get_args

Policy = Literal["weight", "tail_frequency", "weight_and_frequency"]


class Candidate(NamedTuple):
    """What can be said of a concept: it has this relation to that tail."""

    relation: str
    tail: str
    weight: float


Rank = Callable[[Candidate], tuple[Any, ...]]


def ranking(policy: Policy, tail_ranks: Mapping[str, int]) -> Rank:
    """
    The order of candidates, the best first:

    - `"weight"`: by falling weight.
    - `"tail_frequency"`: by falling frequency of the tail in the stories, as the authors of the model did.
    - `"weight_and_frequency"`: by falling weight, and where that is equal by falling frequency of the tail.

    Whatever is still equal goes by the alphabet, tails before relations. Of two with the same tail the one of more
    weight is the better one in all three.
    """
    if policy == "weight":
        return lambda found: (-found.weight, found.tail, found.relation)
    if policy == "tail_frequency":
        return lambda found: (tail_ranks[found.tail], -found.weight, found.relation)
    if policy == "weight_and_frequency":
        return lambda found: (-found.weight, tail_ranks[found.tail], found.relation)
    raise ValueError(f"`policy` must be one of {', '.join(map(repr, get_args(Policy)))}; got {policy!r}.")


class BestCandidates:
    """
    The `size` best candidates of every key, no two with the same tail. What can't be among them any more is thrown
    away as soon as there are several times as many; the order in which they come changes nothing.
    """

    def __init__(self, rank: Rank, size: int):
        self._rank = rank
        self._size = size
        self._limit = 4 * size
        self._by_key: dict[str, dict[str, Candidate]] = {}

    def add(self, key: str, candidate: Candidate) -> None:
        by_tail = self._by_key.setdefault(key, {})
        old = by_tail.get(candidate.tail)
        if old is None or self._rank(candidate) < self._rank(old):
            by_tail[candidate.tail] = candidate
            if len(by_tail) > self._limit:
                self._by_key[key] = {found.tail: found for found in self._best(by_tail.values())}

    def of(self, key: str) -> list[Candidate]:
        """The best, in their order."""
        return self._best(self._by_key.get(key, {}).values())

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_key)

    def _best(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        return sorted(candidates, key=self._rank)[: self._size]
