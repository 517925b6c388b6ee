"""What a notebook shows of an explanation: escaped HTML without scripts, words coloured by source."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import pytest

from hf_storyend import explain
from hf_storyend.explanation import EndingWord, Sources, SourceTriple, SourceWord
from hf_storyend.explanation.snippet import describe_sources

STORY = "Anna put a cake in the oven. The cake was burnt."


class Page(HTMLParser):
    """The elements of a piece of HTML with their attributes, and its text without that of styles."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.text, self.is_style = [], "", False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self.is_style = tag == "style"

    def handle_endtag(self, tag):
        self.is_style = False

    def handle_data(self, data):
        self.text += "" if self.is_style else data


@pytest.fixture
def explanation(make_system, tokenizer):
    return explain(make_system("ie-copy-tails"), tokenizer, STORY, max_new_tokens=5, num_beams=1)


def with_word(explanation, word, sources, **changes):
    """The same explanation with an ending of one word."""
    return replace(explanation, ending=word, words=[EndingWord(word, 0.5, -0.7, sources, [])], evidence=[], **changes)


def test_words_have_the_class_of_their_main_source_and_say_where_they_came_from(explanation):
    place = SourceWord(2, 2, "cake", 0.6)
    triple = SourceTriple("oven", "UsedFor", "cake", 1, 7, "oven", 0.3)
    one = with_word(explanation, "cake", Sources(0.1, [place], [triple]))
    page = Page(one._repr_html_())
    (marked,) = [attributes for tag, attributes in page.elements if attributes.get("title")]
    assert marked["class"] == "source story"
    assert marked["title"].splitlines() == [
        '60 % from "cake" in sentence 2: The cake was burnt.',
        "30 % from oven UsedFor cake",
        "10 % from the vocabulary",
    ]
    assert 'cake"cake" in sentence 2 60 %, oven UsedFor cake 30 %' in page.text
    for sources, kind in (
        (Sources(0.2, [], [replace(triple, share=0.8)]), "source knowledge"),
        (Sources(0.8, [replace(place, share=0.2)], []), "source vocabulary partly"),
        (Sources(1.0, [], []), "source vocabulary"),
    ):
        page = Page(with_word(explanation, "cake", sources)._repr_html_())
        assert [found["class"] for _, found in page.elements if found.get("title")] == [kind]


def test_it_is_escaped_and_has_no_script(explanation):
    evil = "</style><script>alert(1)</script>\" onmouseover='x'"
    sources = Sources(0.1, [SourceWord(1, 1, evil, 0.5)], [SourceTriple(evil, "IsA", evil, 1, 1, evil, 0.4)])
    one = with_word(explanation, evil, sources, story=[evil, evil])
    page = Page(one._repr_html_())
    assert {tag for tag, _ in page.elements} <= {
        *("div", "style", "p", "span", "small", "table", "thead", "tbody", "tr", "th", "td")
    }
    assert all(set(attributes) <= {"class", "title"} for _, attributes in page.elements)
    assert page.text.count("<script>alert(1)</script>") >= 3


def test_a_system_without_sources_shows_the_ending_and_effects(make_system, tokenizer):
    explanation = explain(make_system("ie"), tokenizer, STORY, max_new_tokens=5, num_beams=1)
    page = Page(explanation._repr_html_())
    assert explanation.ending in page.text and "Words by source" not in page.text and "sentence 1" in page.text
    assert describe_sources(explanation, explanation.words[0]) == "100 % from the vocabulary"
