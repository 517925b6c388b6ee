"""What the page shows after something was pressed: text of others escaped, one sentence for every mistake."""

from __future__ import annotations

import base64
import html
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

pytest.importorskip("gradio", reason="gradio is not installed")

from hf_storyend.demo import EndingWriter, build_demo  # noqa: E402
from hf_storyend.demo.handlers import DemoHandlers  # noqa: E402

STORY = "Anna put a cake in the oven.\nThe cake in the oven was burnt."
HOSTILE = (
    "Tom saw </td></iframe><script>window.hacked=1</script> <img src=x onerror=hacked=1> ${hacked=1} {{value}} \" '."
)
STRANGE = "Anna 🎂 put שלום a\u202e cake\u200b $x$ in the oven & <b>ran</b>."


@pytest.fixture(scope="module")
def handlers(model_folder, plain_folder):
    return DemoHandlers(EndingWriter([model_folder, plain_folder]))


def write(handlers, story=STORY, triples="", mode="greedy", number=3, seed=1, system=0):
    system = handlers._writer.systems[system] if isinstance(system, int) else system
    names = ("message", "area", "request", "endings", "ending", "tabs", "evidence", "page", "clues", "attention")
    return dict(zip(names, handlers.write(system, story, triples, mode, number, 0.7, seed), strict=True))


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


def test_an_ending_comes_with_a_row_of_evidence_for_each_word(handlers):
    shown = write(handlers)
    (explanation,) = handlers._writer.write(shown["request"]).endings
    assert shown["message"] == "" and shown["area"].visible
    assert Tags(shown["ending"]).text == explanation.ending
    rows = re.findall(r"<tr><th scope=\"row\".*?</tr>", shown["evidence"])
    assert len(rows) == len(explanation.words)
    for row, word in zip(rows, explanation.words, strict=True):
        text = Tags(row).text
        assert text.startswith(f"{word.word}{word.probability:.3f}")
        for read in word.words[:3]:
            assert read.weight < 0.005 or f"{read.word} {read.weight:.2f}" in text
        for read in word.triples[:3]:
            assert read.weight < 0.005 or f"{read.head} · {read.relation} · {read.tail} {read.weight:.2f}" in text
    assert not shown["endings"].visible


def test_several_endings_can_be_chosen_among(handlers):
    shown = write(handlers, mode="samples", number=4, seed=3)
    endings = handlers._writer.write(shown["request"]).endings
    assert shown["endings"].visible and [number for _, number in shown["endings"].choices] == [0, 1, 2, 3]
    chosen = handlers.choose(shown["request"], 2)
    assert Tags(chosen[0]).text == (endings[2].ending or "(an ending without words)")
    assert f"{endings[2].log_probability:.2f}" in chosen[2]


def test_own_triples_show_the_ending_without_them(handlers):
    shown = write(handlers, triples="oven, Causes, smoke")
    assert "Without your triples:" in Tags(shown["ending"]).text
    assert "Causes" in handlers.page(shown["request"], 0)


def test_a_system_that_copies_says_from_where(handlers):
    evidence = write(handlers, system=1)["evidence"]
    assert "Copied from" in evidence and "Triples it read" not in evidence
    assert "reads no knowledge" in evidence


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"story": ""}, "The story is empty"),
        ({"story": "?!"}, "The story has no words"),
        ({"triples": "oven, Causes, smoke\noven; Causes; smoke"}, "Triple 2 must be head, relation, tail"),
        ({"triples": "\noven, <b>Hates</b>, smoke"}, "Triple 2 can't be used"),
        ({"mode": "samples", "seed": None}, "The seed must be"),
        ({"system": "<i>other</i>"}, "There is no system"),
    ],
)
def test_a_mistake_is_one_sentence_and_no_result(handlers, settings, problem):
    shown = write(handlers, **settings)
    assert names_of(shown["message"]) == {"p"} and problem in Tags(shown["message"]).text
    assert 'role="alert"' in shown["message"]
    assert not shown["area"].visible


def test_a_failure_of_the_server_is_told_without_its_details(handlers, monkeypatch):
    def fail(request):
        raise RuntimeError("secret /path of the server")

    monkeypatch.setattr(handlers._writer, "write", fail)
    message = Tags(write(handlers)["message"]).text
    assert "went wrong" in message and "secret" not in message


def test_a_page_whose_request_was_forgotten_says_so(handlers):
    for shown in (handlers.choose(None, 0)[0], handlers.page(None, 0), handlers.clues(None, 0)):
        assert "write the ending again" in shown


@pytest.mark.parametrize("story", [HOSTILE, STRANGE, f"{STRANGE}\n{HOSTILE}"])
@pytest.mark.parametrize("system", [0, 1])
def test_text_of_others_is_never_markup(handlers, story, system):
    shown = write(handlers, story, system=system)
    assert shown["message"] == ""
    table = {"table", "thead", "tbody", "tr", "th", "td", "span", "small", "p", "ul", "li"}
    assert names_of(shown["evidence"]) <= table
    assert names_of(shown["ending"]) == {"p"}
    ((tag, attributes),) = Tags(handlers.page(shown["request"], 0)).elements
    assert tag == "iframe" and attributes["sandbox"] == "allow-scripts"
    assert attributes["srcdoc"] == handlers._writer.write(shown["request"]).endings[0].to_html()


# The browser has letters that matplotlib lacks.
@pytest.mark.filterwarnings("ignore:Glyph")
@pytest.mark.parametrize("story", [STORY, HOSTILE, STRANGE])
def test_pictures_are_images_with_a_description(handlers, story):
    request = write(handlers, story)["request"]
    for shown in (handlers.clues(request, 0), handlers.attention(request, 0)):
        (_, box), (_, image) = Tags(shown).elements
        assert box["tabindex"] == "0" and image["alt"]
        picture = base64.b64decode(image["src"].removeprefix("data:image/svg+xml;base64,"))
        assert ElementTree.fromstring(picture).tag.endswith("svg")


def test_programs_get_plain_data_and_the_same_sentences(handlers):
    import gradio

    (result,) = handlers.endings(STORY, [["oven", "Causes", "smoke"]])
    assert set(result) == {"ending", "log_probability", "words", "notes"}
    assert {"word", "probability", "words", "triples", "copied"} == set(result["words"][0])
    assert len(handlers.endings(STORY, mode="beams", num_endings=5)) == 5
    with pytest.raises(gradio.Error, match="Greedy search writes one ending, not 2"):
        handlers.endings(STORY, num_endings=2)
    with pytest.raises(gradio.Error, match="Triple 1 must be"):
        handlers.endings(STORY, [["oven"]])


def test_the_page_can_be_built_and_names_every_box(model_folder):
    demo = build_demo([model_folder])
    boxes = [
        block for block in demo.blocks.values() if type(block).__name__ in ("Textbox", "Radio", "Slider", "Number")
    ]
    assert len(boxes) >= 7 and all(box.label for box in boxes)
    assert not demo.analytics_enabled
    assert html.escape(demo.title) == demo.title
