"""Handlers: results as HTML, with text of visitors escaped, and one message for every error."""

from __future__ import annotations

import base64
import html
import re
from dataclasses import astuple, replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

pytest.importorskip("gradio", reason="gradio is not installed")

from hf_storyend.demo import EndingGenerator, build_demo  # noqa: E402
from hf_storyend.demo.app import EXAMPLES, TRIPLE_EXAMPLES  # noqa: E402
from hf_storyend.demo.generator import GeneratedEndings  # noqa: E402
from hf_storyend.demo.handlers import DemoHandlers  # noqa: E402
from hf_storyend.demo.rendering import READING, ending_html, word_table_html  # noqa: E402
from hf_storyend.demo.requests import parse_story, parse_triples  # noqa: E402
from hf_storyend.explanation import EndingWord, Evidence, Sources, SourceTriple, SourceWord  # noqa: E402
from hf_storyend.explanation.wording import effect_text, percent  # noqa: E402

STORY = "Anna put a cake in the oven.\nThe cake in the oven was burnt."
MARKUP = (
    "Tom saw </td></iframe><script>window.hacked=1</script> <img src=x onerror=hacked=1> ${hacked=1} {{value}} \" '."
)
UNICODE = "Anna 🎂 put שלום a\u202e cake\u200b $x$ in the oven & <b>ran</b>."


@pytest.fixture(scope="module")
def handlers(model_directory, copying_directory, pointing_directory):
    return DemoHandlers(EndingGenerator([model_directory, copying_directory, pointing_directory]))


def generate(handlers, story=STORY, triples="", decoding="greedy", number=3, seed=1, system=0):
    system = handlers._generator.systems[system] if isinstance(system, int) else system
    names = ("message", "area", "request", "endings", "ending", "tabs", "words", "page", "clues", "attention")
    return dict(zip(names, handlers.generate(system, story, triples, decoding, number, 0.7, seed), strict=True))


class Tags(HTMLParser):
    """The elements of a piece of HTML with their attributes, and its text."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.text = [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data


def names_of(text):
    return {tag for tag, _ in Tags(text).elements}


def rows_of(text):
    """The text of each row of the tables."""
    return [Tags(row).text for row in re.findall(r"<tr><th scope=\"row\".*?</tr>", text)]


def test_an_ending_comes_with_a_row_for_each_word(handlers):
    shown = generate(handlers)
    (explanation,) = handlers._generator.generate(shown["request"]).endings
    assert shown["message"] == "" and shown["area"].visible
    assert Tags(shown["ending"]).text == f"{explanation.ending}Copy"
    (copy,) = [found for tag, found in Tags(shown["ending"]).elements if tag == "button"]
    assert copy["data-copy"] == explanation.ending
    rows = rows_of(shown["words"])
    assert len(rows) >= len(explanation.words)
    for row, word in zip(rows, explanation.words, strict=False):
        assert row == f"{word.word}{word.probability:.3f}100 %––"
    assert "No word of this ending came from a triple." in shown["words"]
    assert [row.startswith("sentence") for row in rows[-2:]] == [True, True] and "likely" in rows[-1]
    assert any(row.startswith("all triples") for row in rows)
    assert not shown["endings"].visible


def test_several_endings_can_be_chosen_among(handlers):
    shown = generate(handlers, decoding="sampling", number=4, seed=3)
    endings = handlers._generator.generate(shown["request"]).endings
    assert shown["endings"].visible and [number for _, number in shown["endings"].choices] == [0, 1, 2, 3]
    chosen = handlers.choose(shown["request"], 2)
    assert Tags(chosen[0]).text == (endings[2].ending or "(an ending without words)") + "Copy"
    # What is drawn when its tab is opened says so until then.
    assert all("One moment" in waiting for waiting in chosen[3:])
    assert f"{endings[2].log_probability:.2f}" in chosen[2]


def test_own_triples_show_the_ending_without_them(handlers):
    shown = generate(handlers, triples="oven, Causes, smoke")
    generated = handlers._generator.generate(shown["request"])
    before, after = (explanation.ending for explanation in (generated.without_triples, generated.endings[0]))
    text = Tags(shown["ending"]).text
    assert text.startswith(f"Without your triples{before}CopyWith your triples{after}Copy")
    assert ("The same ending" in text) == (before == after)
    assert "Causes" in handlers.page(shown["request"], 0)


def test_a_system_that_copies_shows_the_places(handlers):
    shown = generate(handlers, system=1)
    (explanation,) = handlers._generator.generate(shown["request"]).endings
    copied = [word for word in explanation.words if word.sources.story]
    assert copied
    for word, row in zip(explanation.words, rows_of(shown["words"]), strict=False):
        for place in word.sources.story[:3]:
            assert place.share < 0.005 or f"{place.word}, sentence {place.sentence} {percent(place.share)}" in row
    assert "reads no knowledge" in shown["words"] and "all triples" not in shown["words"]


def test_words_from_knowledge_are_marked_and_their_triples_have_shares_and_effects(handlers):
    shown = generate(handlers, triples="oven, Causes, smoke", system=2)
    (explanation,) = handlers._generator.generate(shown["request"]).endings
    part = shown["ending"].partition("With your triples")[2]
    marked = [attributes for tag, attributes in Tags(part).elements if tag == "span"]
    first = explanation.words[0].sources
    assert marked[0] == {
        "class": "source knowledge",
        "tabindex": "0",
        "data-sources": f"{percent(first.triples[0].share)} from oven Causes smoke",
    }
    best = explanation.evidence[0]
    effect = effect_text(explanation.effects.of_triple(best.triple))
    assert f"oven · Causes · smokesmoke{percent(best.share)}{effect}" in rows_of(shown["words"])
    assert "less likely" in effect and "reads no knowledge" not in shown["words"]


def test_what_stands_in_a_title_is_escaped(handlers):
    """Words of visitors reach attributes: here a name that the ending copies."""
    name = 'x"onmouseover=hacked=1<b>'
    place = SourceWord(1, 1, name, 0.7)
    triple = SourceTriple(name, "IsA", name, 1, 1, name, 0.3)
    word = EndingWord(name, 0.5, -0.7, Sources(0.0, [place], [triple]), [])
    request = generate(handlers)["request"]
    (explanation,) = handlers._generator.generate(request).endings
    evidence = [Evidence(*astuple(triple), name)]
    hostile = replace(
        explanation, ending=f"{name}!", words=[word], evidence=evidence, system={**explanation.system, "copy": True}
    )
    shown = ending_html(GeneratedEndings((hostile,)), 0)
    (_, _), (tag, attributes), *_ = Tags(shown).elements
    assert tag == "span" and set(attributes) == {"class", "tabindex", "data-sources"}
    sources = f'70 % from "{name}" in sentence 1: {hostile.story[0]}\n30 % from {name} IsA {name}'
    assert attributes["data-sources"] == sources
    assert Tags(shown).text.startswith(f"{name}!") and names_of(shown) == {"p", "span", "button"}
    assert Tags(shown).elements[-1][1]["data-copy"] == f"{name}!"
    table = word_table_html(hostile)
    assert "b" not in names_of(table) and not any("onmouseover" in found for _, found in Tags(table).elements)
    assert f"{name} · IsA · {name}" in Tags(table).text


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"story": ""}, "The story is empty"),
        ({"story": "?!"}, "The story has no words"),
        ({"triples": "oven, Causes, smoke\noven; Causes; smoke"}, "Triple 2 must be head, relation, tail"),
        ({"triples": "\noven, <b>Hates</b>, smoke"}, "Triple 2 can't be used"),
        ({"decoding": "sampling", "seed": None}, "The seed must be"),
        ({"system": "<i>other</i>"}, "There is no system"),
    ],
)
def test_an_error_of_the_request_is_one_message_and_no_result(handlers, settings, problem):
    shown = generate(handlers, **settings)
    assert names_of(shown["message"]) == {"p"} and problem in Tags(shown["message"]).text
    assert 'role="alert"' in shown["message"]
    assert not shown["area"].visible


def test_an_error_of_the_server_is_shown_without_details(handlers, monkeypatch):
    def fail(request):
        raise RuntimeError("secret /path of the server")

    monkeypatch.setattr(handlers._generator, "generate", fail)
    message = Tags(generate(handlers)["message"]).text
    assert "went wrong" in message and "secret" not in message


def test_an_expired_page_says_so(handlers):
    for shown in (handlers.choose(None, 0)[0], handlers.page(None, 0), handlers.clues(None, 0)):
        assert "generate the ending again" in shown


@pytest.mark.parametrize("story", [MARKUP, UNICODE, f"{UNICODE}\n{MARKUP}"])
@pytest.mark.parametrize("system", [0, 1, 2])
def test_text_of_visitors_is_never_markup(handlers, story, system):
    shown = generate(handlers, story, system=system)
    assert shown["message"] == ""
    table = {"table", "thead", "tbody", "tr", "th", "td", "span", "small", "p", "ul", "li"}
    assert names_of(shown["words"]) <= table
    assert names_of(shown["ending"]) <= {"p", "span", "button"}
    ((tag, attributes),) = Tags(handlers.page(shown["request"], 0)).elements
    assert tag == "iframe" and attributes["sandbox"] == "allow-scripts"
    assert attributes["srcdoc"] == handlers._generator.generate(shown["request"]).endings[0].to_html()


# The browser has letters that matplotlib lacks.
@pytest.mark.filterwarnings("ignore:Glyph")
@pytest.mark.parametrize("story", [STORY, MARKUP, UNICODE])
def test_pictures_are_images_with_a_description(handlers, story):
    request = generate(handlers, story)["request"]
    for shown in (handlers.clues(request, 0), handlers.attention(request, 0)):
        (_, box), (_, image), _, (button, _) = Tags(shown).elements
        assert button == "button"
        assert box["tabindex"] == "0" and image["alt"]
        picture = base64.b64decode(image["src"].removeprefix("data:image/svg+xml;base64,"))
        assert ElementTree.fromstring(picture).tag.endswith("svg")


def test_programs_get_json_and_the_same_messages(handlers):
    import gradio

    (result,) = handlers.endings(STORY, [["oven", "Causes", "smoke"]])
    assert set(result) == {"ending", "log_probability", "words", "evidence", "effects", "notes"}
    assert {"word", "probability", "sources", "state_attention", "triple_attention"} == set(result["words"][0])
    assert set(result["words"][0]["sources"]) == {"vocabulary", "story", "triples"}
    assert len(handlers.endings(STORY, decoding="beam_search", num_endings=5)) == 5
    with pytest.raises(gradio.Error, match="Greedy decoding gives one ending, not 2"):
        handlers.endings(STORY, decoding="greedy", num_endings=2)
    with pytest.raises(gradio.Error, match="Triple 1 must be"):
        handlers.endings(STORY, [["oven"]])


def test_every_input_of_the_page_has_a_label(model_directory):
    demo = build_demo([model_directory])
    boxes = [
        block
        for block in demo.blocks.values()
        if type(block).__name__ in ("Textbox", "Radio", "Slider", "Number", "Dropdown")
    ]
    assert len(boxes) >= 12 and all(box.label for box in boxes)
    assert not demo.analytics_enabled
    assert html.escape(demo.title) == demo.title


def test_a_triple_is_added_to_the_list_and_its_fields_are_emptied(handlers):
    assert handlers.add_triple("", "oven", "Causes", " smoke ") == ["", "oven, Causes, smoke", "", ""]
    message, triples, *_ = handlers.add_triple("oven, Causes, smoke\n", "cake", "UsedFor", "party")
    assert (message, triples) == ("", "oven, Causes, smoke\ncake, UsedFor, party")
    message, *kept = handlers.add_triple("oven, Causes, smoke", "cake", None, "")
    assert "Triple 2 must be head, relation, tail" in Tags(message).text and all(isinstance(one, dict) for one in kept)


def test_the_relations_to_choose_from_are_those_of_the_system(handlers):
    knowing, copying, _ = handlers._generator.systems
    dropdown = handlers.relations(knowing, "UsedFor")
    assert dropdown.value == "UsedFor" and [name for name, _ in dropdown.choices] == handlers._generator.relations(
        knowing
    )
    assert handlers.relations(knowing, "Unheard").value in handlers._generator.relations(knowing)
    assert handlers.relations(copying).choices == [] and not handlers.relations(copying).interactive


def test_there_are_ten_examples_and_some_with_triples():
    assert len(EXAMPLES) == 10 == len(set(EXAMPLES)) and len(TRIPLE_EXAMPLES) >= 3
    for story, triples in TRIPLE_EXAMPLES:
        assert parse_triples(triples)[0].head in story and len(parse_story(story)) == 3
    for story in EXAMPLES:
        assert len(parse_story(story)) == 4


def test_the_header_has_links_and_one_sentence_on_how_to_read_the_page(model_directory):
    demo = build_demo([model_directory])
    (header,) = [block.value for block in demo.blocks.values() if getattr(block, "elem_id", None) == "header"]
    links = [attributes["href"] for tag, attributes in Tags(header).elements if tag == "a"]
    assert links == ["https://arxiv.org/abs/1808.10113", "code", "card"]
    assert READING in header and re.findall(r"\.\W*$|\. [A-Z]", Tags(READING).text) == ["."]
