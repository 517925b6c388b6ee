"""The table of triples: limits, additions, and its file."""

import json
import string

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hf_storyend import KnowledgeTable

RELATIONS = ["AtLocation", "Causes", "UsedFor"]
VOCABULARY = {word: index for index, word in enumerate(["<unk>", "oven", "ovens", "cake", "heat", "burn", "kitchen"])}


@pytest.fixture
def table():
    return KnowledgeTable(
        RELATIONS, max_triples=2, triples={"oven": [("oven", "UsedFor", "cake")]}, concepts={"ovens": ["oven"]}
    )


def test_additions_come_first_and_the_oldest_fall_off(table):
    table.add([("oven", "Causes", "heat"), ("oven", "/r/AtLocation", "kitchen")])
    assert table.of("oven") == [("oven", "Causes", "heat"), ("oven", "AtLocation", "kitchen")]


def test_one_triple_a_tail(table):
    table.add([("oven", "Causes", "cake")])
    assert table.of("oven") == [("oven", "Causes", "cake")]


def test_inflected_forms_share_what_is_added(table):
    table.add([("oven", "Causes", "heat")])
    assert table.of("ovens") == [("oven", "Causes", "heat")]


def test_tensors(table):
    table.add([("oven", "Causes", "heat")])
    ids, mask = table.lookup(VOCABULARY)[:2]
    assert ids.shape == (7, 2, 3) and mask.sum(1).tolist() == [0, 2, 1, 0, 0, 0, 0]
    assert ids[1].tolist() == [[1, 1, 4], [1, 2, 3]]
    assert torch.equal(KnowledgeTable().lookup(VOCABULARY).triple_mask, torch.zeros(7, 1, dtype=torch.long))


def test_words_out_of_the_vocabulary_have_rows_behind_it(table):
    table.add([("stove", "Causes", "heat"), ("pan", "UsedFor", "cake")])
    assert table.rows(VOCABULARY) == {**VOCABULARY, "pan": 7, "stove": 8}


@pytest.mark.parametrize("max_triples", [0, -1, 10**9, 2.0, True])
def test_a_word_has_one_triple_at_least_and_not_very_many(max_triples):
    assert KnowledgeTable(max_triples=1).max_triples == 1
    with pytest.raises(ValueError, match="`max_triples` must be a whole number of at least 1 and at most"):
        KnowledgeTable(max_triples=max_triples)


def test_problems(table):
    triples = [("oven", "UsedFor", "cake"), ("oven", "Likes", "cake"), ("stove", "UsedFor", "pie"), ("oven",)]
    problems = table.problems_with(triples, VOCABULARY)
    assert set(problems) == {1, 2, 3}
    assert "'Likes' is not one of AtLocation" in problems[1]
    assert "'pie' not in the vocabulary" in problems[2]
    assert "not (head, relation, tail)" in problems[3]


words = st.text(string.ascii_lowercase + "äß漢", min_size=1, max_size=5)
triples = st.tuples(words, st.sampled_from(RELATIONS), words)
graphs = st.dictionaries(words, st.lists(triples, max_size=4), max_size=6)


@given(graphs, graphs, st.dictionaries(words, st.lists(words, max_size=2), max_size=4))
def test_file_round_trip(tmp_path_factory, graphs, phrases, concepts):
    path = tmp_path_factory.mktemp("table") / "knowledge.json"
    table = KnowledgeTable(RELATIONS, 4, graphs, concepts, phrases, {"covered": 3})
    table.save(path)
    assert vars(KnowledgeTable.load(path)) == vars(table)


@pytest.mark.parametrize(
    "corrupt, message",
    [
        (lambda c: c.pop("triples"), "`triples` is missing"),
        (lambda c: c.update(format=9), "`format` is 9"),
        (lambda c: c["words"].update(oven=[7]), "list of positions"),
        (lambda c: c["words"].update(oven=[-1]), "list of positions"),
        (lambda c: c["words"].update(oven="0"), "list of positions"),
        (lambda c: c["words"].update(oven=[0, 0, 0]), "has 3 triples"),
        (lambda c: c["triples"][0].__setitem__(1, "Likes"), "known relation"),
        (lambda c: c["triples"][0].pop(), "known relation"),
        (lambda c: c.update(max_triples=0), "`max_triples`"),
        (lambda c: c.update(relations=["UsedFor", "UsedFor"]), "twice"),
        (lambda c: c.update(words=[1]), "not a knowledge table"),
    ],
)
def test_broken_files_are_refused_by_name(table, tmp_path, corrupt, message):
    path = tmp_path / "knowledge.json"
    table.save(path)
    content = json.loads(path.read_text())
    corrupt(content)
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=message) as error:
        KnowledgeTable.load(path)
    assert "knowledge.json" in str(error.value)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b"null", b'"text"'])
def test_files_that_are_not_tables(tmp_path, content):
    path = tmp_path / "knowledge.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is not a knowledge table"):
        KnowledgeTable.load(path)
