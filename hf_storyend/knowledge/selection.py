"""Selection of triples: rank the candidates of a head by a named policy and keep the best."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, get_args

Policy = Literal["weight", "tail_frequency", "weight_and_frequency"]
# The policy that needs stories; see `hf_storyend.knowledge.story_lift`.
STORY_LIFT = "story_lift"
DEFAULT_MIN_LIFT = 1.5


class Candidate(NamedTuple):
    """A triple without its head."""

    relation: str
    tail: str
    weight: float


# Sort key: the best candidate has the smallest.
Rank = Callable[[Candidate], tuple[Any, ...]]


def ranking(policy: Policy, tail_ranks: Mapping[str, int]) -> Rank:
    """
    Return the sort key of a policy:

    - `"weight"`: by descending weight.
    - `"tail_frequency"`: by descending frequency of the tail in the stories, as in the authors' code.
    - `"weight_and_frequency"`: by descending weight, ties by descending frequency of the tail.

    Remaining ties are broken alphabetically, by tail and then by relation. Of two candidates with the same tail, every
    policy prefers the one with the larger weight.

    Args:
        policy: Name of the policy.
        tail_ranks: Rank of each tail by descending frequency.
    """
    if policy == "weight":
        return lambda found: (-found.weight, found.tail, found.relation)
    if policy == "tail_frequency":
        return lambda found: (tail_ranks[found.tail], -found.weight, found.relation)
    if policy == "weight_and_frequency":
        return lambda found: (-found.weight, tail_ranks[found.tail], found.relation)
    raise ValueError(f"`policy` must be one of {', '.join(map(repr, get_args(Policy)))}; got {policy!r}.")


class TopCandidates:
    """
    The `size` best candidates of every head, one per tail.

    Memory is bounded: candidates that can't be among the best are dropped while others are added. The order of
    additions does not change the result.
    """

    def __init__(self, rank: Rank, size: int):
        self._rank = rank
        self._size = size
        self._limit = 4 * size
        self._by_head: dict[str, dict[str, Candidate]] = {}

    def add(self, head: str, candidate: Candidate) -> None:
        """Add a candidate of a head."""
        by_tail = self._by_head.setdefault(head, {})
        old = by_tail.get(candidate.tail)
        if old is None or self._rank(candidate) < self._rank(old):
            by_tail[candidate.tail] = candidate
            if len(by_tail) > self._limit:
                self._by_head[head] = {found.tail: found for found in self._best(by_tail.values())}

    def of(self, head: str) -> list[Candidate]:
        """Return the best candidates of a head, the best first."""
        return self._best(self._by_head.get(head, {}).values())

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_head)

    def _best(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        return sorted(candidates, key=self._rank)[: self._size]
