"""Triples selected by their lift over stories, compared with slow counts in plain Python."""

from __future__ import annotations

import math
import random
from itertools import product
from typing import Any

import numpy as np
import pytest

from hf_storyend.knowledge import lift
from hf_storyend.knowledge.edges import Edge, ReadReport
from hf_storyend.knowledge.lemma_pairs import LemmaPairs
from hf_storyend.knowledge.lift import Neighbours, PairLift
from hf_storyend.knowledge.story_counts import StoryCounts, StoryWords
from hf_storyend.knowledge.story_lift import MAX_UNSEEN_TRIPLES, build_story_lift_table
from hf_storyend.modeling.knowledge_table import KnowledgeTable

NUM_WORDS, NUM_LEMMAS = 14, 9
# Words 0 and 1 have no lemma; some lemmas have two words.
LEMMA_OF_WORD = np.array([-1, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 2])

Story = tuple[list[int], list[int]]


def random_stories(seed: int, num_stories: int = 60) -> list[Story]:
    rng = random.Random(seed)
    # Small numbers are frequent words.
    words = [min(int(rng.expovariate(0.25)), NUM_WORDS - 1) for _ in range(5000)]
    return [
        ([rng.choice(words) for _ in range(rng.randint(1, 8))], [rng.choice(words) for _ in range(rng.randint(0, 5))])
        for _ in range(num_stories)
    ]


def flat(stories: list[Story]) -> StoryWords:
    def arrays(part: int) -> tuple[np.ndarray, np.ndarray]:
        rows = [(index, word) for index, story in enumerate(stories) for word in story[part]]
        return np.array([row[0] for row in rows], dtype=np.int64), np.array([row[1] for row in rows], dtype=np.int64)

    return StoryWords(len(stories), *arrays(0), *arrays(1))


def lemma_sets(story: Story) -> tuple[set[int], set[int]]:
    context, ending = ({int(LEMMA_OF_WORD[word]) for word in part} - {-1} for part in story)
    return context, ending - context


def all_pairs(num_relations: int = 2) -> LemmaPairs:
    found = [(head, tail) for head, tail in product(range(NUM_LEMMAS), repeat=2) if head != tail]
    heads, tails = np.array(found).T
    return LemmaPairs(heads, tails, (heads + tails) % num_relations, ["Causes", "IsA"][:num_relations])


class SlowLift:
    """The equations of `hf_storyend.knowledge.lift`, one pair at a time."""

    def __init__(self, stories: list[Story], pairs: LemmaPairs, neighbours: Neighbours | None):
        self.sets = [lemma_sets(story) for story in stories]
        self.pairs, self.neighbours = pairs, neighbours
        self.relation_lifts = [self._relation_lift(relation) for relation in range(len(pairs.names))]

    def numbers(self, head: int, tail: int, left_out: int | None = None) -> tuple[int, int, int, int]:
        kept = [sets for index, sets in enumerate(self.sets) if index != left_out]
        together = sum(head in context and tail in new for context, new in kept)
        return (
            together,
            sum(head in context for context, _ in kept),
            sum(tail in new for _, new in kept),
            len(kept),
        )

    def _relation_lift(self, relation: int) -> float:
        rows = zip(self.pairs.heads.tolist(), self.pairs.tails.tolist(), self.pairs.relations.tolist(), strict=True)
        counts = [self.numbers(head, tail) for head, tail, other in rows if other == relation]
        expected = sum(num_head * num_tail / total for _, num_head, num_tail, total in counts)
        return sum(count[0] for count in counts) / expected

    def lift_of(self, position: int, left_out: int | None = None) -> float:
        head, tail = int(self.pairs.heads[position]), int(self.pairs.tails[position])
        together, num_head, num_tail, total = self.numbers(head, tail, left_out)
        share = num_tail / total
        if share == 0:
            return 0.0
        relation_lift = self.relation_lifts[int(self.pairs.relations[position])]
        k1, near = self._near(head, tail, share, left_out)
        k2 = lift.RELATION_STORIES
        scale = max(1.0, lift.MIN_EXPECTED / ((k1 + k2) * share))
        probability = (together + scale * (k1 * near + k2 * relation_lift * share)) / (num_head + scale * (k1 + k2))
        return probability / share

    def _near(self, head: int, tail: int, share: float, left_out: int | None) -> tuple[float, float]:
        if self.neighbours is None or not self.neighbours.weights[head].any():
            return 0.0, 0.0
        numerator, denominator = 10 * share, 10.0
        for lemma, weight in zip(self.neighbours.lemmas[head], self.neighbours.weights[head], strict=True):
            together, num_head, _, _ = self.numbers(int(lemma), tail, left_out)
            numerator += weight * together
            denominator += weight * num_head
        return lift.NEIGHBOUR_STORIES, numerator / denominator


@pytest.fixture(params=[False, True], ids=["without vectors", "with vectors"])
def neighbours(request, monkeypatch) -> Neighbours | None:
    if not request.param:
        return None
    monkeypatch.setattr(lift, "_MIN_NEIGHBOUR_STORIES", 5)
    vectors = np.random.default_rng(0).normal(size=(NUM_LEMMAS, 2))
    # A lemma without a vector has no neighbours.
    vectors[4] = 0
    counts = StoryCounts(flat(random_stories(1)), LEMMA_OF_WORD, NUM_LEMMAS)
    return Neighbours.nearest(vectors, counts.contexts)


def test_counts() -> None:
    stories = random_stories(1)
    counts, pairs = StoryCounts(flat(stories), LEMMA_OF_WORD, NUM_LEMMAS), all_pairs()
    slow = SlowLift(stories, pairs, None)
    together = counts.pairs(pairs.heads, pairs.tails)
    for position, (head, tail) in enumerate(zip(pairs.heads.tolist(), pairs.tails.tolist(), strict=True)):
        numbers = together[position], counts.contexts[head], counts.endings[tail], counts.num_stories
        assert numbers == slow.numbers(head, tail)
    assert together.any()


def test_counts_do_not_depend_on_how_many_stories_are_read_at_a_time(monkeypatch) -> None:
    pairs = all_pairs()

    def found() -> list[Any]:
        counts = StoryCounts(flat(random_stories(2)), LEMMA_OF_WORD, NUM_LEMMAS)
        chunks = list(counts.occurrences(pairs.heads, pairs.tails))
        return [
            counts.pairs(pairs.heads, pairs.tails).tolist(),
            *(np.concatenate(part).tolist() for part in zip(*chunks, strict=True)),
        ]

    at_once = found()
    monkeypatch.setattr("hf_storyend.knowledge.story_counts._CHUNK_SIZE", 7)
    assert found() == at_once


def test_lift(neighbours: Neighbours | None) -> None:
    stories, pairs = random_stories(1), all_pairs()
    counts = StoryCounts(flat(stories), LEMMA_OF_WORD, NUM_LEMMAS)
    slow = SlowLift(stories, pairs, neighbours)
    expected = [slow.lift_of(position) for position in range(len(pairs))]
    np.testing.assert_allclose(PairLift(pairs, counts, neighbours).lifts, expected, rtol=1e-9)


def test_a_story_is_left_out_as_if_it_had_not_been_there(neighbours: Neighbours | None) -> None:
    stories, pairs = random_stories(1), all_pairs()
    counts = StoryCounts(flat(stories), LEMMA_OF_WORD, NUM_LEMMAS)
    fast, slow = PairLift(pairs, counts, neighbours), SlowLift(stories, pairs, neighbours)
    occurrences = [np.concatenate(parts) for parts in zip(*counts.occurrences(pairs.heads, pairs.tails), strict=True)]
    rows = list(zip(*(part.tolist() for part in occurrences), strict=True))
    expected_rows = [
        (index, word, position)
        for index, story in enumerate(stories)
        for word in sorted(set(story[0]))
        for position in range(len(pairs))
        if pairs.heads[position] == LEMMA_OF_WORD[word] and pairs.tails[position] in lemma_sets(story)[1]
    ]
    assert sorted(rows) == sorted(expected_rows)
    found = fast.without(occurrences[0], occurrences[2])
    # The mean lift of a relation is that of all stories.
    expected = [slow.lift_of(position, left_out=index) for index, _, position in rows]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert (np.abs(found - fast.lifts[occurrences[2]]) > 1e-3).any()


def test_neighbours_are_frequent_near_and_another_lemma() -> None:
    vectors = np.array([[1, 0], [0.9, 0.1], [0.8, 0.5], [-1, 0], [0, 0], [1, 0.01]], dtype=float)
    contexts = np.array([500, 150, 200, 300, 400, 149])
    found = Neighbours.nearest(vectors, contexts)
    near = {int(lemma): weight for lemma, weight in zip(found.lemmas[0], found.weights[0], strict=True) if weight}
    assert set(near) == {1, 2}
    assert near[1] > near[2]
    assert sum(near.values()) == pytest.approx(1)
    cosines = [vectors[index] @ vectors[0] / np.linalg.norm(vectors[index]) for index in (1, 2)]
    assert near[1] / near[2] == pytest.approx(math.exp(6 * (cosines[0] - cosines[1])), rel=1e-5)
    assert not found.weights[4].any()
    # `0` is the nearest of the rare `5`.
    assert found.lemmas[5][np.argmax(found.weights[5])] == 0


# Stories of exams: passing or failing ends them, dogs and cakes do not.
WORDS = "the a exam exams passed pass failed dog bark barked cake eat ate happy tom studied"
VOCABULARY = {word: index for index, word in enumerate(["<unk>", "<pad>", "<s>", "</s>", *WORDS.split()])}
TEXTS = [
    *[("tom studied the exam", "tom passed")] * 8,
    *[("the exams", "failed")] * 4,
    *[("the dog", "a dog barked")] * 10,
    *[("a cake", "tom ate happy")] * 10,
    *[("the a", "tom happy")] * 20,
]
EDGES = [
    Edge("exam", "Causes", "passing"),
    Edge("taking_an_exam", "HasSubevent", "failing"),
    Edge("exam", "RelatedTo", "pass"),
    Edge("dog", "CapableOf", "bark"),
    Edge("cake", "UsedFor", "eat"),
    Edge("exam", "RelatedTo", "cake"),
    Edge("exam", "RelatedTo", "bark"),
    Edge("quiz", "Causes", "passing"),
    Edge("quiz", "RelatedTo", "failing"),
    Edge("quiz", "RelatedTo", "happy"),
    Edge("quiz", "RelatedTo", "eat"),
    Edge("tom", "CapableOf", "bark"),
]


def stories_of(texts: list[tuple[str, str]]) -> StoryWords:
    return flat(
        [
            ([VOCABULARY[w] for w in context.split()], [VOCABULARY[w] for w in ending.split()])
            for context, ending in texts
        ]
    )


def build(edges: list[Edge] = EDGES, **options: Any):
    return build_story_lift_table(edges, VOCABULARY, stories_of(TEXTS), **{"names": ["tom"], **options})


class TestTable:
    def test_tails_that_the_stories_confirm_are_kept(self) -> None:
        table, _ = build()
        assert table.of("exam") == [("exam", "Causes", "pass"), ("exam", "HasSubevent", "failed")]
        assert table.of("dog") == [("dog", "CapableOf", "bark")]

    def test_the_weight_is_the_log_of_the_lift(self) -> None:
        table, _ = build()
        # 8 of 12 stories with an exam end with passing, 8 of all 52; the pairs of `Causes` are these alone: the quiz
        # is in no story. k0 does not matter: 20 pseudo-stories expect three.
        relation_lift = 8 / (12 * 8 / 52)
        expected = (8 + 20 * relation_lift * 8 / 52) / (12 + 20) / (8 / 52)
        assert table.weights[("exam", "Causes", "pass")] == pytest.approx(math.log(expected), abs=1e-4)

    def test_min_lift(self) -> None:
        table, _ = build()
        weight = table.weights[("exam", "HasSubevent", "failed")]
        kept, _ = build(min_lift=math.exp(weight) - 0.01)
        assert ("exam", "HasSubevent", "failed") in kept.of("exam")
        dropped, _ = build(min_lift=math.exp(weight) + 0.01)
        assert ("exam", "HasSubevent", "failed") not in dropped.of("exam")

    def test_max_triples_keeps_the_largest_probability_times_log_lift(self) -> None:
        table, _ = build(max_triples=1)
        assert table.of("exam") == [("exam", "Causes", "pass")]

    def test_all_forms_retrieve_the_triples_of_their_lemma(self) -> None:
        table, _ = build()
        assert table.of("exams") == table.of("exam")
        # `dogs` is no word of the vocabulary.
        assert table.of("dogs") == table.of("dog")
        assert table.concepts["exams"] == ["exam"]

    def test_heads_that_no_story_has_get_few_triples(self) -> None:
        edges = [*EDGES, *(Edge("quiz", "Causes", tail) for tail in ("failing", "happy", "eat", "bark"))]
        table, _ = build(edges, min_lift=1.0)
        assert 0 < len(table.of("quiz")) <= MAX_UNSEEN_TRIPLES
        assert {head for head, _, _ in table.of("quizzes")} == {"quiz"}

    def test_a_tail_is_its_lemma_or_else_its_most_frequent_form(self) -> None:
        table, _ = build()
        assert table.of("exam")[1][2] == "failed"
        assert table.of("exam")[0][2] == "pass"

    def test_forms_are_words_of_the_vocabulary(self) -> None:
        table, _ = build()
        assert table.forms["pass"] == ["pass", "passed"]
        assert table.forms["bark"] == ["bark", "barked"]
        assert table.forms_of("failed") == ["failed"]

    def test_names_have_no_triples(self) -> None:
        table, _ = build(min_lift=1.0)
        assert not table.of("tom")
        assert all(tail != "tom" for rows in table.triples.values() for _, _, tail in rows)

    def test_inverse_triples(self) -> None:
        texts = [*TEXTS, *[("a dog barked", "the exam")] * 3, *[("passed", "exam")] * 5]
        table, _ = build_story_lift_table(EDGES, VOCABULARY, stories_of(texts))
        assert ("pass", "CausedBy", "exam") in table.of("passed")

    def test_the_order_of_edges_does_not_matter(self, tmp_path) -> None:
        for name, edges in (("one", EDGES), ("other", EDGES[::-1])):
            build(edges)[0].save(tmp_path / name)
        assert (tmp_path / "one").read_text() == (tmp_path / "other").read_text()

    def test_is_saved_and_loaded(self, tmp_path) -> None:
        table, _ = build()
        table.save(tmp_path / "knowledge.json")
        loaded = KnowledgeTable.load(tmp_path / "knowledge.json")
        assert (loaded.triples, loaded.forms, loaded.statistics) == (table.triples, table.forms, table.statistics)

    def test_statistics(self) -> None:
        table, _ = build(report=ReadReport(num_lines=3), counts={"exam": 3})
        numbers = table.statistics
        assert numbers["policy"] == "story_lift"
        assert numbers["min_lift"] == 1.5
        assert numbers["num_unseen_words"] == sum(word not in VOCABULARY for word in table.triples) > 0
        assert numbers["reading"]["num_lines"] == 3

    def test_vectors_lend_the_stories_of_neighbours(self, monkeypatch) -> None:
        monkeypatch.setattr(lift, "_MIN_NEIGHBOUR_STORIES", 5)
        vectors = {"exam": [1.0, 0.0], "quiz": [0.9, 0.1], "dog": [0.0, 1.0]}
        triple = ("quiz", "RelatedTo", "failed")
        with_vectors, _ = build(
            min_lift=1.0, vectors_of=lambda words: np.array([vectors.get(word, [0.0, 0.0]) for word in words])
        )
        assert triple in with_vectors.of("quiz")
        assert triple not in build(min_lift=1.0)[0].of("quiz")


class TestHeldOut:
    def test_rows_of_the_stories_whose_ending_has_the_tail(self) -> None:
        table, held_out = build()
        rows = list(zip(held_out.stories.tolist(), held_out.words.tolist(), held_out.tails.tolist(), strict=True))
        expected = [
            (index, VOCABULARY[word], VOCABULARY[tail])
            for index, (context, ending) in enumerate(TEXTS)
            for word in context.split()
            for _, _, tail in table.of(word)
            if set(table.forms_of(tail)) & set(ending.split())
        ]
        assert sorted(rows) == sorted(expected)
        assert held_out.stories.tolist() == sorted(held_out.stories.tolist())

    def test_weights_without_the_story(self) -> None:
        table, held_out = build()
        triple = ("dog", "CapableOf", "bark")
        of_dog = held_out.weights[held_out.words == VOCABULARY["dog"]]
        # The only pairs of the relation; without the story 9 of 9 stories with a dog end so, and 9 of 51.
        relation_lift = 10 / (10 * 10 / 52)
        expected = (9 + 20 * relation_lift * 9 / 51) / (9 + 20) / (9 / 51)
        assert of_dog.tolist() == pytest.approx([math.log(expected)] * 10, abs=1e-5)
        assert of_dog[0] != pytest.approx(table.weights[triple], abs=1e-3)

    def test_a_triple_that_only_the_story_supports_is_dropped(self) -> None:
        texts = [*TEXTS, ("the cake", "a dog")]
        edges = [*EDGES, Edge("cake", "RelatedTo", "dog")]
        table, held_out = build_story_lift_table(edges, VOCABULARY, stories_of(texts))
        assert ("cake", "RelatedTo", "dog") in table.of("cake")
        is_pair = (held_out.words == VOCABULARY["cake"]) & (held_out.tails == VOCABULARY["dog"])
        assert np.isnan(held_out.weights[is_pair]).tolist() == [True]


@pytest.mark.parametrize(
    ("edges", "options", "message"),
    [
        ([Edge("qzxv", "IsA", "qzxw")], {}, "No edge has a content word of the vocabulary"),
        (EDGES, {"min_lift": 1000.0}, "No triple reaches `min_lift`, 1000"),
        (EDGES, {"max_triples": 0}, "`max_triples`"),
        (EDGES, {"relations": []}, "`relations`"),
    ],
)
def test_bad_input(edges: list[Edge], options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build(edges, **options)
