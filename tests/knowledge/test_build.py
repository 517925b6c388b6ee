"""Edges become the triples of a vocabulary by the rules of the paper, whatever their order."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_storyend.knowledge import Edge, ReadReport, build_knowledge_table, describe_statistics, read_edges
from hf_storyend.modeling import KnowledgeTable


def vocabulary_of(words: str) -> dict[str, int]:
    return {word: index for index, word in enumerate(["<unk>", "<pad>", "<s>", "</s>", *words.split()])}


VOCABULARY = vocabulary_of(
    "the . house food time dog kitchen water cook cooking pet mice cheese walk happy felt soft feel hand in treat "
    "trick or halloween dress up costume"
)


def build(edges: Iterable[Edge], vocabulary: dict[str, int] | None = None, **options: Any) -> KnowledgeTable:
    return build_knowledge_table(edges, vocabulary or VOCABULARY, **options)


def edge(text: str, weight: float = 1.0) -> Edge:
    """`dog/n IsA pet`."""
    head, relation, tail = text.split()
    (head, _, head_pos), (tail, _, tail_pos) = head.partition("/"), tail.partition("/")
    return Edge(head, relation, tail, weight, head_pos or None, tail_pos or None)


def content(table: KnowledgeTable) -> tuple[object, ...]:
    return (table.relations, table.triples, table.concepts, table.phrases, table.statistics)


ANCHOR = edge("dog IsA pet")


class TestRules:
    def test_a_word_retrieves_what_its_lemma_and_itself_are_head_of(self) -> None:
        table = build([edge("cook AtLocation kitchen"), edge("cooking RelatedTo food")])
        assert table.of("cooking") == [("cooking", "RelatedTo", "food"), ("cook", "AtLocation", "kitchen")]
        assert table.of("cook") == [("cook", "AtLocation", "kitchen")]

    def test_a_lemma_out_of_the_vocabulary_is_shown_as_the_word(self) -> None:
        table = build([edge("mouse Desires cheese")])
        assert table.triples == {"mice": [("mice", "Desires", "cheese")]}

    @pytest.mark.parametrize(
        "text",
        [
            "dog/n IsA pet/n",
            "dog/v IsA pet",
            "dog IsA pet/v",
        ],
    )
    def test_part_of_speech_of_the_uri(self, text: str) -> None:
        assert build([edge(text)]).of("dog") == [("dog", "IsA", "pet")]

    @pytest.mark.parametrize(
        "text",
        [
            "dog/a RelatedTo food",  # the URI decides, though it is a noun too
            "dog RelatedTo food/r",
            "dog RelatedTo food/s",
            "dog RelatedTo happy",  # only an adjective
            "happy RelatedTo dog",
            "dog RelatedTo the",
            "in/n RelatedTo food",  # indium, but not in a story
            "dog RelatedTo in/n",
            "dog RelatedTo wolf",  # not in the vocabulary
            "wolf RelatedTo dog",
            "dog RelatedTo <pad>",
            "dog RelatedTo hot_food",
            "hot_food RelatedTo dog",
            "dog RelatedTo dog",  # itself
            "cooking RelatedTo cook",  # its own lemma
        ],
    )
    def test_edges_that_are_left_out(self, text: str) -> None:
        table = build([ANCHOR, edge(text)])
        rows = [triple for word in ("dog", "cooking", "happy", "in") for triple in table.of(word)]
        assert rows == [("dog", "IsA", "pet")]

    def test_at_most_so_many_triples_a_word_and_one_a_tail(self) -> None:
        tails = ["house", "food", "time", "kitchen", "water"]
        edges = [edge(f"dog {relation} {tail}") for tail in tails for relation in ("RelatedTo", "AtLocation")]
        table = build(edges, max_triples=3)
        assert table.of("dog") == [("dog", "AtLocation", tail) for tail in tails[:3]]
        assert table.max_triples == 3

    def test_a_limit_is_not_used_up_by_the_words_own_lemmas(self) -> None:
        edges = [edge("cooking RelatedTo cook", 9.0), edge("cook RelatedTo cooking", 9.0), edge("cook IsA time")]
        assert build(edges, max_triples=1).of("cooking") == [("cook", "IsA", "time")]

    def test_relations_are_sorted_or_as_given(self) -> None:
        edges = [edge("dog IsA pet"), edge("dog AtLocation house"), edge("dog Desires food")]
        assert build(edges).relations == ["AtLocation", "Desires", "IsA"]
        table = build(edges, relations=["/r/IsA", "PartOf", "AtLocation"])
        assert table.relations == ["IsA", "PartOf", "AtLocation"]
        assert [triple[1] for triple in table.of("dog")] == ["AtLocation", "IsA"]
        assert table.statistics["relations"] == {"AtLocation": 1, "IsA": 1, "PartOf": 0}

    def test_concepts_are_there_for_words_without_triples_too(self) -> None:
        table = build([ANCHOR])
        assert table.concepts["cooking"] == ["cook"]
        assert table.concepts["mice"] == ["mouse"]
        assert table.concepts["felt"] == ["feel"]
        assert not {"dog", "the", ".", "<pad>"} & set(table.concepts)
        table.relations.append("AtLocation")
        table.add([("cook", "IsA", "time")])
        assert table.of("cooking") == [("cook", "IsA", "time")]

    def test_lemmas_that_rules_make_up_must_be_words(self) -> None:
        table = build([ANCHOR], vocabulary_of("dog pet christmas burgers burger jones"))
        assert table.concepts == {"burgers": ["burger"]}

    def test_vocabulary_with_capitals(self) -> None:
        vocabulary = vocabulary_of("The dog Dogs Dog Halloween halloweens candy Candy")
        table = build([edge("dog RelatedTo halloween"), edge("halloween RelatedTo candy")], vocabulary)
        assert table.triples == {
            "dog": [("dog", "RelatedTo", "Halloween")],
            "Dogs": [("dog", "RelatedTo", "Halloween")],
            "Dog": [("dog", "RelatedTo", "Halloween")],
            "Halloween": [("Halloween", "RelatedTo", "candy")],
            "halloweens": [("Halloween", "RelatedTo", "candy")],
        }
        assert table.concepts["Dogs"] == ["dog", "dogs"]

    def test_all_words_of_triples_are_in_the_vocabulary(self) -> None:
        table = build([edge("mouse Desires cheese"), edge("cook AtLocation kitchen"), edge("feel RelatedTo soft/n")])
        assert not table.problems_with((triple for rows in table.triples.values() for triple in rows), VOCABULARY)

    def test_nothing_left_is_an_error(self) -> None:
        for edges in ([], [edge("wolf IsA animal")]):
            with pytest.raises(ValueError, match="nothing to retrieve"):
                build(edges)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"policy": "best"}, "`policy` must be one of 'weight', 'tail_frequency'.*'best'"),
            ({"max_triples": 0}, "`max_triples`.*0"),
            ({"relations": []}, "`relations`"),
            ({"relations": ["IsA", "/r/IsA"]}, "`relations` has a name twice"),
        ],
    )
    def test_bad_options_are_refused_before_the_edges_are_read(self, options: dict[str, Any], message: str) -> None:
        edges = (pytest.fail("was read") for _ in range(1))
        with pytest.raises(ValueError, match=message):
            build(edges, **options)


class TestPolicies:
    # By frequency: house, food, time.
    edges = [
        edge("dog RelatedTo house", 1.0),
        edge("dog RelatedTo food", 2.0),
        edge("dog RelatedTo time", 2.0),
        edge("dog Desires food", 3.0),
        edge("dog CapableOf time", 2.0),
        edge("dog RelatedTo water", 1.0),
    ]

    @pytest.mark.parametrize(
        ("policy", "expected"),
        [
            ("weight", ["Desires food", "CapableOf time", "RelatedTo house", "RelatedTo water"]),
            ("tail_frequency", ["RelatedTo house", "Desires food", "CapableOf time", "RelatedTo water"]),
            ("weight_and_frequency", ["Desires food", "CapableOf time", "RelatedTo house", "RelatedTo water"]),
        ],
    )
    def test_order(self, policy: Any, expected: list[str]) -> None:
        table = build(self.edges, policy=policy)
        assert [" ".join(triple[1:]) for triple in table.of("dog")] == expected
        assert table.statistics["policy"] == policy

    @pytest.mark.parametrize(
        ("policy", "expected"),
        [
            ("weight", ["food", "house", "kitchen"]),  # the alphabet
            ("tail_frequency", ["house", "food", "kitchen"]),
            ("weight_and_frequency", ["house", "food", "kitchen"]),
        ],
    )
    def test_equal_weights(self, policy: Any, expected: list[str]) -> None:
        table = build([edge(f"dog RelatedTo {tail}") for tail in ("kitchen", "house", "food")], policy=policy)
        assert [triple[2] for triple in table.of("dog")] == expected

    def test_of_two_concepts_the_likelier_one_wins_where_all_else_is_equal(self) -> None:
        edges = [edge("felt RelatedTo hand"), edge("feel RelatedTo hand")]
        assert build(edges).of("felt") == [("feel", "RelatedTo", "hand")]
        assert build([*edges, edge("felt IsA hand", 2.0)]).of("felt") == [("felt", "IsA", "hand")]


class TestDirections:
    edges = [edge("dog/n AtLocation kitchen/n"), edge("dog Synonym pet")]

    def test_are_as_in_the_paper_by_default(self) -> None:
        assert set(build(self.edges).triples) == {"dog"}

    def test_symmetric_relations(self) -> None:
        table = build(self.edges, symmetric=True)
        assert table.of("pet") == [("pet", "Synonym", "dog")]
        assert table.of("kitchen") == []

    def test_inverse_edges_keep_the_name_of_the_relation(self) -> None:
        table = build(self.edges, inverse=True)
        assert table.of("pet") == [("pet", "Synonym", "dog")]
        assert table.of("kitchen") == [("kitchen", "AtLocation", "dog")]
        assert table.of("dog") == build(self.edges).of("dog")

    def test_parts_of_speech_turn_too(self) -> None:
        table = build([edge("dog/a Synonym pet/n"), edge("cook Synonym food")], symmetric=True)
        assert not table.of("pet")


class TestPhrases:
    edges = [
        ANCHOR,
        edge("trick_or_treat RelatedTo halloween", 2.0),
        edge("trick_or_treat RelatedTo costume"),
        edge("trick_or_treat RelatedTo treat", 3.0),
        edge("dress_up/v HasPrerequisite costume"),
        edge("dress_up RelatedTo halloween"),
        edge("or_treat RelatedTo halloween"),
        edge("dress_the RelatedTo halloween"),
        edge("hot_treat RelatedTo halloween"),
        edge("in_time/r RelatedTo walk"),
        edge("treat RelatedTo trick_or_treat"),
    ]

    def test_are_an_option(self) -> None:
        assert build(self.edges).phrases == {}

    def test_of_known_words_have_their_last_word_as_head(self) -> None:
        table = build(self.edges, multi_word=True)
        assert table.phrases == {
            "trick or treat": [("treat", "RelatedTo", "halloween"), ("treat", "RelatedTo", "costume")],
            "dress up": [("up", "RelatedTo", "halloween"), ("up", "HasPrerequisite", "costume")],
        }
        assert table.triples == build(self.edges).triples
        assert table.statistics["num_phrases"] == 2

    def test_have_a_limit_of_triples_too(self) -> None:
        table = build(self.edges, multi_word=True, max_triples=1)
        assert table.phrases["trick or treat"] == [("treat", "RelatedTo", "halloween")]

    def test_alone_are_enough(self) -> None:
        assert len(build(self.edges[1:3], multi_word=True)) == 0


class TestStatistics:
    def test_numbers(self) -> None:
        vocabulary = vocabulary_of("the dog mice cheese happy house")
        edges = [edge("dog AtLocation house"), edge("dog Desires cheese"), edge("mouse Desires cheese")]
        counts = {"the": 5, "dog": 2, "mice": 1, "cheese": 2}
        report = ReadReport(num_lines=4, num_edges=3, num_malformed=1, examples=["some.csv, line 7: broken"])
        table = build(edges, vocabulary, counts=counts, report=report, max_triples=4)
        assert table.statistics == {
            "policy": "weight_and_frequency",
            "max_triples": 4,
            "inverse": False,
            "symmetric": False,
            "multi_word": False,
            "num_words": 6,
            "num_query_words": 4,
            "num_covered_words": 2,
            "num_triples": 3,
            "triples_per_covered_word": 1.5,
            "triples_per_query_word": 0.75,
            "most_triples_of_a_word": 2,
            "num_phrases": 0,
            "triples_per_running_word": 0.5,
            "covered_running_words": 0.3,
            "relations": {"Desires": 2, "AtLocation": 1},
            "reading": {
                "num_lines": 4,
                "num_edges": 3,
                "num_other_language": 0,
                "num_filtered": 0,
                "num_malformed": 1,
                "examples": ["some.csv, line 7: broken"],
            },
        }

    def test_are_saved_with_the_table(self, tmp_path: Path) -> None:
        table = build([ANCHOR], report=ReadReport())
        table.save(tmp_path / "knowledge.json")
        assert content(KnowledgeTable.load(tmp_path / "knowledge.json")) == content(table)

    def test_in_words(self) -> None:
        report = ReadReport(num_lines=1, num_malformed=1, examples=["some.csv, line 7: broken"])
        table = build([ANCHOR], counts={"dog": 1}, symmetric=True, multi_word=True, report=report)
        text = describe_statistics(json.loads(json.dumps(table.statistics)))
        for part in ("1 triples for 1 of", "policy: weight_and_frequency", "IsA 1", "some.csv, line 7", "symmetric"):
            assert part in text
        assert "running word" in text
        assert "running word" not in describe_statistics(build([ANCHOR]).statistics)

    def test_of_many_relations_the_first_are_shown(self) -> None:
        heads_and_tails = [
            (head, tail) for head in ("dog", "cook") for tail in ("house", "food", "time", "water", "pet", "hand")
        ]
        table = build([edge(f"{head} Relation{n} {tail}") for n, (head, tail) in enumerate(heads_and_tails)])
        assert describe_statistics(table.statistics).splitlines()[-1].endswith(" 1 and 2 more")


WORDS = list(VOCABULARY)[4:]
NODES = st.sampled_from([*WORDS, "mouse", "wolf", "trick_or_treat"])
EDGES = st.builds(
    Edge,
    NODES,
    st.sampled_from(["IsA", "RelatedTo", "Synonym"]),
    NODES,
    st.sampled_from([0.5, 1.0, 2.0]),
    st.sampled_from([None, "n", "v", "a"]),
    st.sampled_from([None, "n", "v", "a"]),
)
OPTIONS = st.fixed_dictionaries(
    {
        "policy": st.sampled_from(["weight", "tail_frequency", "weight_and_frequency"]),
        "max_triples": st.integers(1, 4),
        "inverse": st.booleans(),
        "symmetric": st.booleans(),
        "multi_word": st.booleans(),
    }
)


def dump_of(edges: Iterable[Edge]) -> str:
    lines = []
    for found in edges:
        head, tail = (
            f"/c/en/{node}" + (f"/{part}" if part else "")
            for node, part in ((found.head, found.head_pos), (found.tail, found.tail_pos))
        )
        information = json.dumps({"license": "cc", "weight": found.weight})
        lines.append(f"/a/[x]\t/r/{found.relation}\t{head}\t{tail}\t{information}\n")
    return "".join(lines)


class TestOrder:
    @settings(deadline=None)
    @given(st.lists(EDGES, max_size=80), OPTIONS, st.randoms(use_true_random=False))
    def test_of_edges_changes_nothing(
        self, edges: list[Edge], options: dict[str, Any], generator: random.Random
    ) -> None:
        edges = [ANCHOR, *edges]
        expected = content(build(edges, **options))
        generator.shuffle(edges)
        assert content(build([*edges, *edges], **options)) == expected

    @settings(deadline=None)
    @given(st.lists(EDGES, max_size=40), OPTIONS, st.integers(1, 300), st.randoms(use_true_random=False))
    def test_streamed_and_in_memory_are_one_whatever_block_size_and_file_order(
        self,
        tmp_path_factory: pytest.TempPathFactory,
        edges: list[Edge],
        options: dict[str, Any],
        block_size: int,
        generator: random.Random,
    ) -> None:
        edges = [ANCHOR, *edges]
        cut = generator.randint(0, len(edges))
        paths = []
        for name, part in (("first", edges[:cut]), ("second", edges[cut:])):
            path = tmp_path_factory.mktemp("dump") / name
            path.write_text(dump_of(part or [ANCHOR]), encoding="utf-8")
            paths.append(path)
        generator.shuffle(paths)
        streamed = build(read_edges(paths, block_size=block_size), **options)
        assert content(streamed) == content(build(edges, **options))

    @settings(deadline=None)
    @given(st.lists(EDGES, max_size=60), OPTIONS)
    def test_rules_hold_for_every_table(self, edges: list[Edge], options: dict[str, Any]) -> None:
        table = build([ANCHOR, *edges], **options)
        for key, rows in (*table.triples.items(), *table.phrases.items()):
            tails = [tail for _, _, tail in rows]
            assert 0 < len(tails) <= options["max_triples"]
            assert len(set(tails)) == len(tails)
            assert all(head != tail and tail != key for head, _, tail in rows)
            assert all(head in VOCABULARY and tail in VOCABULARY for head, _, tail in rows)
