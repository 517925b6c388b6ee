"""Handlers: results as HTML, with text of visitors escaped, and one message for every error."""

from __future__ import annotations

import base64
import html
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

pytest.importorskip("gradio", reason="gradio is not installed")

from hf_storyend.demo import EndingGenerator, build_demo  # noqa: E402
from hf_storyend.demo.handlers import DemoHandlers  # noqa: E402

STORY = "Anna put a cake in the oven.\nThe cake in the oven was burnt."
MARKUP = (
    "Tom saw </td></iframe><script>window.hacked=1</script> <img src=x onerror=hacked=1> ${hacked=1} {{value}} \" '."
)
UNICODE = "Anna 🎂 put שלום a\u202e cake\u200b $x$ in the oven & <b>ran</b>."


@pytest.fixture(scope="module")
def handlers(model_directory, copying_directory):
    return DemoHandlers(EndingGenerator([model_directory, copying_directory]))


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


def test_an_ending_comes_with_a_row_for_each_word(handlers):
    shown = generate(handlers)
    (explanation,) = handlers._generator.generate(shown["request"]).endings
    assert shown["message"] == "" and shown["area"].visible
    assert Tags(shown["ending"]).text == explanation.ending
    rows = re.findall(r"<tr><th scope=\"row\".*?</tr>", shown["words"])
    assert len(rows) == len(explanation.words)
    for row, word in zip(rows, explanation.words, strict=True):
        text = Tags(row).text
        assert text.startswith(f"{word.word}{word.probability:.3f}")
        for read in word.state_attention[:3]:
            assert read.weight < 0.005 or f"{read.word} {read.weight:.2f}" in text
        for read in word.triple_attention[:3]:
            assert read.weight < 0.005 or f"{read.head} · {read.relation} · {read.tail} {read.weight:.2f}" in text
    assert not shown["endings"].visible


def test_several_endings_can_be_chosen_among(handlers):
    shown = generate(handlers, decoding="sampling", number=4, seed=3)
    endings = handlers._generator.generate(shown["request"]).endings
    assert shown["endings"].visible and [number for _, number in shown["endings"].choices] == [0, 1, 2, 3]
    chosen = handlers.choose(shown["request"], 2)
    assert Tags(chosen[0]).text == (endings[2].ending or "(an ending without words)")
    assert f"{endings[2].log_probability:.2f}" in chosen[2]


def test_own_triples_show_the_ending_without_them(handlers):
    shown = generate(handlers, triples="oven, Causes, smoke")
    assert "Without your triples:" in Tags(shown["ending"]).text
    assert "Causes" in handlers.page(shown["request"], 0)


def test_a_system_that_copies_shows_the_places(handlers):
    table = generate(handlers, system=1)["words"]
    assert "Copied from" in table and "Attention to triples" not in table
    assert "reads no knowledge" in table


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
@pytest.mark.parametrize("system", [0, 1])
def test_text_of_visitors_is_never_markup(handlers, story, system):
    shown = generate(handlers, story, system=system)
    assert shown["message"] == ""
    table = {"table", "thead", "tbody", "tr", "th", "td", "span", "small", "p", "ul", "li"}
    assert names_of(shown["words"]) <= table
    assert names_of(shown["ending"]) == {"p"}
    ((tag, attributes),) = Tags(handlers.page(shown["request"], 0)).elements
    assert tag == "iframe" and attributes["sandbox"] == "allow-scripts"
    assert attributes["srcdoc"] == handlers._generator.generate(shown["request"]).endings[0].to_html()


# The browser has letters that matplotlib lacks.
@pytest.mark.filterwarnings("ignore:Glyph")
@pytest.mark.parametrize("story", [STORY, MARKUP, UNICODE])
def test_pictures_are_images_with_a_description(handlers, story):
    request = generate(handlers, story)["request"]
    for shown in (handlers.clues(request, 0), handlers.attention(request, 0)):
        (_, box), (_, image) = Tags(shown).elements
        assert box["tabindex"] == "0" and image["alt"]
        picture = base64.b64decode(image["src"].removeprefix("data:image/svg+xml;base64,"))
        assert ElementTree.fromstring(picture).tag.endswith("svg")


def test_programs_get_json_and_the_same_messages(handlers):
    import gradio

    (result,) = handlers.endings(STORY, [["oven", "Causes", "smoke"]])
    assert set(result) == {"ending", "log_probability", "words", "notes"}
    assert {"word", "probability", "state_attention", "triple_attention", "copied"} == set(result["words"][0])
    assert len(handlers.endings(STORY, decoding="beam_search", num_endings=5)) == 5
    with pytest.raises(gradio.Error, match="Greedy decoding gives one ending, not 2"):
        handlers.endings(STORY, num_endings=2)
    with pytest.raises(gradio.Error, match="Triple 1 must be"):
        handlers.endings(STORY, [["oven"]])


def test_every_input_of_the_page_has_a_label(model_directory):
    demo = build_demo([model_directory])
    boxes = [
        block for block in demo.blocks.values() if type(block).__name__ in ("Textbox", "Radio", "Slider", "Number")
    ]
    assert len(boxes) >= 7 and all(box.label for box in boxes)
    assert not demo.analytics_enabled
    assert html.escape(demo.title) == demo.title
