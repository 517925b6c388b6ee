"""Words out of text, and text out of words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_storyend.data.embedded import embedded_stories
from hf_storyend.modeling.text_processing import truecase_forms, join_words, normalize_text, split_words


@pytest.mark.parametrize(
    "text, words",
    [
        ("Tom's dog didn't bark.", ["Tom", "'s", "dog", "did", "n't", "bark", "."]),
        ("We can't, won't and shouldn't!", ["We", "ca", "n't", ",", "wo", "n't", "and", "should", "n't", "!"]),
        ("They'd said I'm late, you've won.", "They 'd said I 'm late , you 've won .".split()),
        ("It cost $3,000 at 10:30 a.m.", ["It", "cost", "$", "3,000", "at", "10:30", "a.m."]),
        ("A well-known 5th o'clock ma'am", ["A", "well-known", "5th", "o'clock", "ma'am"]),
        ("Wait... what?!", ["Wait", "...", "what", "?", "!"]),
        ("did n't , Tom 's", ["did", "n't", ",", "Tom", "'s"]),
        ("café naïve 日本", ["café", "naïve", "日本"]),
    ],
)
def test_split(text, words):
    assert split_words(text) == words


def test_contractions_can_stay_whole():
    text = "Tom's dog didn't bark, they've won."
    assert split_words(text, split_contractions=False) == [
        "Tom's",
        "dog",
        "didn't",
        "bark",
        ",",
        "they've",
        "won",
        ".",
    ]


PRINTED = [
    "Tom's dog didn't bark, and we can't sleep.",
    '"I\'m not sad," she laughed.',
    'He said: "Go home!" and left.',
    '"Why?" asked Tom.',
    "It cost $3,000 (twice) for the boys' dog.",
    "50% of it's gone/lost; isn't it?!",
    "Wait... what happened at 10:30 a.m. today?",
    "They yelled, 'Go on!' for hours.",
    "The well-known end -- or not.",
    "He paid. She did not.",
]


@pytest.mark.parametrize("text", PRINTED)
@pytest.mark.parametrize("split_contractions", [True, False])
def test_join_prints_as_a_person_would(text, split_contractions):
    words = split_words(text.lower(), split_contractions)
    assert join_words(words, {"tom": "Tom", "i": "I", "i'm": "I'm"}) == text


def test_our_own_corpus_comes_back():
    """Split, lowered and joined, endings are what was written (the corpus has no style but the plain one)."""
    stories = embedded_stories()
    endings = [story["ending"] for story in stories]
    sentences = [split_words(s) for story in stories for s in (*story["context"], story["ending"])]
    wrong, usual = [], truecase_forms(sentences)
    for ending in endings:
        own = truecase_forms([split_words(ending)])
        joined = join_words([word.lower() for word in split_words(ending)], {**usual, **own})
        wrong += [(ending, joined)] if joined != ending else []
    assert len(wrong) <= 0.02 * len(endings), wrong[:5]


def test_normalisation():
    assert normalize_text("“It’s\u200b late…”\u00a0she\x00 said — twice") == '"It\'s late..." she said -- twice'
    assert normalize_text("cafe\u0301") == "café"


def test_cased_forms():
    words = [["We", "met", "Tom", "in", "May"], ["Tom", "may", "come", ".", "Now", "!"], ['"', "Why", "?"]]
    assert truecase_forms(words) == {"tom": "Tom"}


@given(st.text())
def test_every_visible_character_is_in_a_word(text):
    text = normalize_text(text)
    assert "".join(split_words(text)) == "".join(text.split())


@given(st.lists(st.text(st.characters(exclude_categories=["Zs", "Cc"]), min_size=1)))
def test_join_never_fails_and_keeps_all(words):
    words = [word for word in words if not any(character.isspace() for character in word)]
    joined = join_words(words)
    assert len("".join(joined.split())) >= len("".join(words))
