"""Requests: what visitors may ask for, and the message for what they may not."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hf_storyend.demo.options import StoryLimits
from hf_storyend.demo.requests import (
    EndingRequest,
    UserTriple,
    parse_story,
    parse_triple,
    parse_triples,
)

SENTENCES = ("Anna had a cake.",)


def test_a_story_is_one_sentence_a_line_or_running_text():
    sentences = ("Anna had a cake.", "It burnt.")
    assert parse_story("Anna had a cake.\nIt burnt.") == sentences
    assert parse_story("  Anna had a cake. It burnt. ") == sentences
    assert parse_story("\n\nAnna had a cake\n\nIt burnt\n") == ("Anna had a cake", "It burnt")


@pytest.mark.parametrize(
    ("story", "problem"),
    [
        ("", "The story is empty"),
        (" \n\t", "The story is empty"),
        ("\u200b\u202e", "The story is empty"),
        ("... !! 🎂", "The story has no words: `... !! 🎂`"),
        ("a" * 4001, "The story has 4,001 characters, more than 4,000: shorten it, or raise `max_characters`."),
        ("Anna \ud800.", "half a character"),
        (None, "The story must be text; got nothing"),
        (["Anna"], "The story must be text"),
    ],
)
def test_invalid_stories(story, problem):
    with pytest.raises(ValueError, match=problem):
        parse_story(story)


def test_stories_that_are_too_long():
    """In the words of the commands."""
    with pytest.raises(ValueError, match="51 sentences, more than 50: .* the limit `max_sentences`."):
        EndingRequest("s", parse_story("It rained. " * 51))
    problem = "Sentence 2 of the story has 501 words, more than 500: .* the limit `max_sentence_length`."
    with pytest.raises(ValueError, match=problem):
        EndingRequest("s", parse_story("It rained.\n" + "very " * 500 + "hard"))
    with pytest.raises(ValueError, match="no sentence"):
        EndingRequest("s", ())


def test_longer_stories_where_the_options_allow_them():
    limits = StoryLimits(max_sentences=400, max_sentence_length=600, max_characters=10_000)
    story = "It rained. " * 399 + "very " * 599 + "hard"
    assert len(EndingRequest("s", parse_story(story, limits), limits=limits).sentences) == 400
    with pytest.raises(ValueError, match="401 sentences, more than 400"):
        EndingRequest("s", parse_story("It rained. " + story, limits), limits=limits)


def test_triples_keep_the_row_they_were_given_in():
    given_triples = parse_triples("oven, UsedFor, bake\n\n  cake ,AtLocation,  party  \n")
    assert given_triples == (UserTriple(1, "oven", "UsedFor", "bake"), UserTriple(3, "cake", "AtLocation", "party"))
    assert parse_triples("") == ()


@pytest.mark.parametrize("line", ["oven, UsedFor", "oven, UsedFor, bake, cake", "oven,,bake", ",,"])
def test_an_invalid_triple_is_named_by_its_row(line):
    with pytest.raises(ValueError, match=r"Triple 2 must be head, relation, tail, like .*; got"):
        parse_triples(f"oven, UsedFor, bake\n{line}")


@pytest.mark.parametrize("parts", [None, "abc", [1, 2, 3], ["oven", "UsedFor"]])
def test_a_triple_of_a_program_is_three_strings(parts):
    with pytest.raises(ValueError, match="Triple 4 must be"):
        parse_triple(4, parts)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"decoding": "magic"}, "one of greedy, beam_search, sampling; got `magic`"),
        (
            {"decoding": "beam_search", "num_endings": 9},
            "number of endings must be a whole number from 1 to 8; got `9`",
        ),
        ({"decoding": "beam_search", "num_endings": 1.5}, "number of endings must be a whole number"),
        ({"decoding": "greedy", "num_endings": 2}, "Greedy decoding gives one ending, not 2"),
        ({"decoding": "sampling", "seed": None}, "The seed must be a whole number from 0 to 2147483647; got nothing"),
        ({"decoding": "sampling", "seed": -1}, "The seed must be a whole number"),
        ({"decoding": "sampling", "seed": True}, "The seed must be a whole number"),
        ({"decoding": "sampling", "temperature": 0}, "The temperature must be a number from 0.1 to 2.0; got `0`"),
        ({"decoding": "sampling", "temperature": float("nan")}, "The temperature must be a number"),
        ({"decoding": "sampling", "top_p": 0}, "Top-p must be a number from 0.05 to 1.0; got `0`"),
        ({"decoding": "sampling", "top_k": -1}, "Top-k must be a whole number from 0 to 200; got `-1`"),
        ({"triples": (UserTriple(1, "a", "b", "c"),) * 51}, "There are 51 triples; the demo takes at most 50"),
    ],
)
def test_settings_out_of_range(arguments, problem):
    with pytest.raises(ValueError, match=problem):
        EndingRequest("s", SENTENCES, **arguments)


@settings(deadline=None)
@example("{\n{")
@given(st.text(max_size=200) | st.none() | st.integers())
def test_any_story_gives_a_request_or_one_message(story):
    try:
        request = EndingRequest("s", parse_story(story))
    except ValueError as error:
        assert "\n" not in str(error) and len(str(error)) < 200
    else:
        assert all(sentence.strip() for sentence in request.sentences)


@settings(deadline=None)
@given(st.text(alphabet="abc, \n\u200b", max_size=60))
def test_any_list_of_triples_gives_triples_or_one_message(text):
    try:
        triples = parse_triples(text)
    except ValueError as error:
        assert str(error).startswith("Triple ")
    else:
        assert all(all(triple.parts) for triple in triples)
