"""What a visitor may ask for, and the sentence that says what to mend."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_storyend.demo.requests import EndingRequest, OwnTriple, read_sentences, read_triple, read_triples

SENTENCES = ("Anna had a cake.",)


def test_a_story_is_one_sentence_a_line_or_running_text():
    sentences = ("Anna had a cake.", "It burnt.")
    assert read_sentences("Anna had a cake.\nIt burnt.") == sentences
    assert read_sentences("  Anna had a cake. It burnt. ") == sentences
    assert read_sentences("\n\nAnna had a cake\n\nIt burnt\n") == ("Anna had a cake", "It burnt")


@pytest.mark.parametrize(
    ("story", "problem"),
    [
        ("", "The story is empty"),
        (" \n\t", "The story is empty"),
        ("\u200b\u202e", "The story is empty"),
        ("... !! 🎂", "The story has no words: `... !! 🎂`"),
        ("a" * 4001, "The story has 4,001 characters"),
        ("Anna \ud800.", "half a character"),
        (None, "The story must be text; got nothing"),
        (["Anna"], "The story must be text"),
    ],
)
def test_stories_that_are_none(story, problem):
    with pytest.raises(ValueError, match=problem):
        read_sentences(story)


def test_stories_that_would_keep_others_waiting():
    with pytest.raises(ValueError, match="The story has 13 sentences; the demo takes 1 to 12"):
        EndingRequest("s", read_sentences("It rained. " * 13))
    with pytest.raises(ValueError, match="Sentence 2 has 52 words; the demo takes 1 to 50"):
        EndingRequest("s", read_sentences("It rained.\n" + "very " * 51 + "hard"))


def test_triples_keep_the_row_they_were_given_in():
    given_triples = read_triples("oven, UsedFor, bake\n\n  cake ,AtLocation,  party  \n")
    assert given_triples == (OwnTriple(1, "oven", "UsedFor", "bake"), OwnTriple(3, "cake", "AtLocation", "party"))
    assert read_triples("") == ()


@pytest.mark.parametrize("line", ["oven, UsedFor", "oven, UsedFor, bake, cake", "oven,,bake", ",,"])
def test_a_triple_that_is_none_is_named_by_its_row(line):
    with pytest.raises(ValueError, match=r"Triple 2 must be head, relation, tail, like .*; got"):
        read_triples(f"oven, UsedFor, bake\n{line}")


@pytest.mark.parametrize("parts", [None, "abc", [1, 2, 3], ["oven", "UsedFor"]])
def test_a_triple_of_a_program_is_three_pieces_of_text(parts):
    with pytest.raises(ValueError, match="Triple 4 must be"):
        read_triple(4, parts)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"mode": "magic"}, "one of greedy, beams, samples; got `magic`"),
        ({"mode": "beams", "num_endings": 9}, "number of endings must be a whole number from 1 to 8; got `9`"),
        ({"mode": "beams", "num_endings": 1.5}, "number of endings must be a whole number"),
        ({"num_endings": 2}, "Greedy search writes one ending, not 2"),
        ({"mode": "samples", "seed": None}, "The seed must be a whole number from 0 to 2147483647; got nothing"),
        ({"mode": "samples", "seed": -1}, "The seed must be a whole number"),
        ({"mode": "samples", "seed": True}, "The seed must be a whole number"),
        ({"mode": "samples", "temperature": 0}, "The temperature must be a number from 0.1 to 2.0; got `0`"),
        ({"mode": "samples", "temperature": float("nan")}, "The temperature must be a number"),
        ({"triples": (OwnTriple(1, "a", "b", "c"),) * 51}, "There are 51 triples; the demo takes 50 at most"),
    ],
)
def test_settings_out_of_range(settings, problem):
    with pytest.raises(ValueError, match=problem):
        EndingRequest("s", SENTENCES, **settings)


@given(st.text(max_size=200) | st.none() | st.integers())
def test_any_story_gives_a_request_or_one_sentence(story):
    try:
        request = EndingRequest("s", read_sentences(story))
    except ValueError as error:
        assert "\n" not in str(error) and len(str(error)) < 200
    else:
        assert all(sentence.strip() for sentence in request.sentences)


@given(st.text(alphabet="abc, \n\u200b", max_size=60))
def test_any_list_of_triples_gives_triples_or_one_sentence(text):
    try:
        triples = read_triples(text)
    except ValueError as error:
        assert str(error).startswith("Triple ")
    else:
        assert all(all(triple.parts) for triple in triples)
