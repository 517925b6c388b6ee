"""Lemmas and parts of speech, as the table builder needs them."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_storyend.knowledge import lexicon
from hf_storyend.knowledge.lexicon import (
    FUNCTION_WORDS,
    content_lemma,
    inflections,
    is_content_word,
    is_noun_or_verb,
    is_own_lemma,
    lemmas,
)


@pytest.mark.parametrize(
    ("word", "lemma"),
    [
        ("cooking", "cook"),
        ("mice", "mouse"),
        ("went", "go"),
        ("children", "child"),
        ("dogs", "dog"),
        ("decided", "decide"),
        ("dog", "dog"),
        ("cook", "cook"),
    ],
)
def test_words_with_one_lemma(word: str, lemma: str) -> None:
    assert lemmas(word) == (lemma,)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("felt", ("feel", "felt")),
        ("left", ("leave", "left")),
        ("saw", ("see", "saw")),
        ("running", ("running", "run")),
        ("glasses", ("glasses", "glass")),
        ("leaves", ("leave", "leaf")),
    ],
)
def test_the_likeliest_lemma_is_first(word: str, expected: tuple[str, ...]) -> None:
    assert lemmas(word) == expected


@pytest.mark.parametrize(("word", "lemma"), [("burgers", "burger"), ("texted", "text"), ("xylophoning", "xylophone")])
def test_rules_are_for_words_out_of_the_dictionary(word: str, lemma: str) -> None:
    assert not lexicon.is_in_dictionary(word)
    assert lemmas(word) == (word, lemma)


@pytest.mark.parametrize("name", ["barbara", "tanya", "halloween"])
def test_names_are_no_forms(name: str) -> None:
    assert lemmas(name) == (name,)


@pytest.mark.parametrize("word", ["kitchen", "eat", "mice", "running", "halloween", "ice-cream", "website"])
def test_nouns_and_verbs(word: str) -> None:
    assert is_noun_or_verb(word)


@pytest.mark.parametrize("word", ["happy", "quickly", "delicious"])
def test_other_content_words(word: str) -> None:
    assert is_content_word(word)
    assert not is_noun_or_verb(word)
    assert lemmas(word) == ()


@pytest.mark.parametrize("word", ["the", "her", "this", "in", "was", "had", "could", "n't", "'s", "three", "."])
def test_function_words_and_marks_are_left_out_though_dictionaries_have_them(word: str) -> None:
    assert not is_content_word(word)
    assert lemmas(word) == ()


@pytest.mark.parametrize("text", ["", "10", "$", "-", "a-", "<pad>", "hot dog", "hot_dog", "4th"])
def test_what_is_no_word(text: str) -> None:
    assert not is_content_word(text)


@settings(deadline=None)
@given(st.text() | st.sampled_from(sorted(FUNCTION_WORDS)))
def test_lemmas_are_distinct_content(text: str) -> None:
    found = lemmas(text)
    assert len(set(found)) == len(found)
    assert not FUNCTION_WORDS & set(found)
    assert bool(found) == is_noun_or_verb(text)


def test_missing_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lemminflect", None)
    lexicon._lemminflect.cache_clear()
    lemmas.cache_clear()
    with pytest.raises(ImportError, match=r'pip install "hf_storyend\[knowledge\]"'):
        lemmas("cooking")


@pytest.mark.parametrize(
    ("word", "lemma"),
    [
        ("mice", "mouse"),
        ("went", "go"),
        ("running", "run"),
        ("excited", "excite"),
        ("evening", "evening"),
        ("games", "game"),
        ("news", "news"),
        ("happier", "happy"),
        ("happily", "happily"),
        ("texted", "text"),
        ("halloween", "halloween"),
        ("the", None),
        ("7", None),
    ],
)
def test_content_lemma(word: str, lemma: str | None) -> None:
    assert content_lemma(word) == lemma


def test_inflections() -> None:
    assert inflections("candle")[0] == "candle"
    assert {"candles", "candled", "candling"} <= set(inflections("candle"))
    assert set(inflections("candle", with_verb_forms=False)) == {"candle", "candles"}
    assert inflections("qzxv") == ("qzxv",)


def test_words_that_are_their_own_lemma() -> None:
    assert is_own_lemma("ground")
    assert is_own_lemma("excited")
    assert not is_own_lemma("walked")
