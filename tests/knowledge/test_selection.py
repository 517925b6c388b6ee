"""The best candidates of a head are those of sorting all, in bounded memory."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from hf_storyend.knowledge.selection import Candidate, TopCandidates, ranking

WORDS = "house food time dog kitchen water cook cooking pet mice cheese walk happy felt soft feel hand".split()
RANKS = {word: rank for rank, word in enumerate(WORDS)}


class TestTopCandidates:
    @settings(deadline=None)
    @given(
        st.lists(
            st.builds(Candidate, st.sampled_from("ABC"), st.sampled_from(WORDS), st.sampled_from([1.0, 2.0, 3.0]))
        ),
        st.sampled_from(["weight", "tail_frequency", "weight_and_frequency"]),
        st.integers(1, 3),
    )
    def test_are_those_of_sorting_everything(self, candidates: list[Candidate], policy: Any, size: int) -> None:
        rank = ranking(policy, RANKS)
        best = TopCandidates(rank, size)
        for candidate in candidates:
            best.add("head", candidate)
        by_tail: dict[str, Candidate] = {}
        for candidate in sorted(candidates, key=rank):
            by_tail.setdefault(candidate.tail, candidate)
        assert best.of("head") == list(by_tail.values())[:size]

    def test_memory_is_bounded_by_the_result(self) -> None:
        best = TopCandidates(ranking("weight", {}), 3)
        for number in range(10_000):
            best.add("head", Candidate("IsA", f"tail{number}", number % 97))
        assert len(best._by_head["head"]) <= 12
