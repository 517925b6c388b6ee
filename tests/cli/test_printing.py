"""Markdown for people and for programs: nothing of a table is ever cut off."""

import io
import re

import pytest
from rich.console import Console

from hf_storyend.cli import printing
from hf_storyend.explanation.wording import align_words

TABLE = "# Title\n\n| system | perplexity |\n| --- | ---: |\n| one constant ending | 12.5 |\n| other | |\n"


@pytest.fixture
def terminal(monkeypatch):
    """What is printed on a terminal of so many columns."""

    def make(width: int) -> io.StringIO:
        screen = io.StringIO()
        monkeypatch.setattr(printing, "Console", lambda: Console(file=screen, force_terminal=True, width=width))
        return screen

    return make


def test_files_and_programs_get_it_as_it_is(capsys):
    printing.print_page(TABLE)
    assert capsys.readouterr().out == TABLE + "\n"


def test_a_terminal_shows_a_table(terminal, capsys):
    screen = terminal(60)
    printing.print_page(TABLE)
    assert "one constant ending" in screen.getvalue() and "|" not in screen.getvalue()
    assert capsys.readouterr().out == ""


def test_cells_may_be_folded_between_words(terminal):
    screen = terminal(24)
    printing.print_page(TABLE)
    shown = screen.getvalue()
    assert all(word in shown for word in ("constant", "perplexity", "12.5")) and "|" not in shown


def test_words_are_not_cut(terminal, capsys):
    screen = terminal(20)
    printing.print_page(TABLE)
    assert capsys.readouterr().out == TABLE + "\n" and screen.getvalue() == ""


def test_a_page_without_tables(terminal):
    screen = terminal(8)
    printing.print_page("Some words.")
    assert screen.getvalue().split() == ["Some", "words."]


def result(ending, words, evidence=(), knowledge_effect=None):
    """A result of the pipeline; words as (word, share of the vocabulary, places, triples)."""
    return {
        "ending": ending,
        "score": -0.5,
        "words": [
            {"word": word, "probability": 0.5, "vocabulary": vocabulary, "story": story, "triples": triples}
            for word, vocabulary, story, triples in words
        ],
        "evidence": list(evidence),
        "knowledge_effect": knowledge_effect,
    }


PLACE = {"word": "[b]", "sentence": 1, "position": 2, "share": 0.12}
TRIPLE = {"head": "cat", "relation": "IsA", "tail": "[i]pet", "word": "cat", "sentence": 1, "position": 1}


def test_text_is_printed_as_it_is(capsys):
    printing.print_line("a [bold]model[/] :cat: of 3")
    words = [
        ("it", 1.0, [], []),
        ("slept", 0.47, [PLACE], [{**TRIPLE, "share": 0.41}]),
        (".", 0.95, [{**PLACE, "share": 0.05}], []),
    ]
    evidence = {**TRIPLE, "share": 0.41, "ending_word": "slept", "effect": 1.13, "factor": 3.1}
    printing.print_endings(":cat: [b]", [result("It slept. [/]", words, [evidence], {"effect": None, "factor": None})])
    printed = capsys.readouterr().out
    assert "a [bold]model[/] :cat: of 3\n:cat: [b]\n  It slept. [/]  (-0.50 a word)\n" in printed
    assert '      slept: 41 % from cat IsA [i]pet, 12 % from "[b]" in sentence 1\n' in printed
    assert "      without cat IsA [i]pet the ending is 3.1 times less likely\n" in printed
    assert "      without all triples the ending is impossible\n" in printed
    assert ".:" not in printed


@pytest.mark.parametrize(
    ("effect", "line"),
    [
        (None, "No word of this ending came from a triple.\n"),
        (
            {"effect": 0.0, "factor": 1.0},
            "No word of this ending came from a triple; without all triples it is as likely.\n",
        ),
    ],
)
def test_a_line_says_that_knowledge_played_no_part(effect, line, capsys):
    printing.print_endings("A story.", [result("It slept.", [("it", 1.0, [], [])], knowledge_effect=effect)])
    assert line in capsys.readouterr().out


def test_words_have_the_colour_of_their_main_source(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(
        printing, "Console", lambda **settings: Console(file=screen, force_terminal=True, width=80, **settings)
    )
    words = [
        ("it", 1.0, [], []),
        ("did", 0.1, [{**PLACE, "share": 0.9}], []),
        ("n't", 1.0, [], []),
        ("sleep", 0.4, [], [{**TRIPLE, "share": 0.6}]),
    ]
    printing.print_endings("A story.", [result("It didn't sleep.", words)])
    ending = screen.getvalue().splitlines()[1]
    assert re.findall(r"\x1b\[([\d;]*)m([\w']+)", ending)[:3] == [("1", "It"), ("1;32", "did"), ("1", "n't")]
    assert "\x1b[1;36msleep\x1b" in ending


def test_words_are_found_in_the_text_whatever_its_case_and_spaces():
    words = ["she", "could", "n't", "leave", ",", "gone", "Tom"]
    pieces = align_words("She couldn't leave, Tom", words)
    assert [(piece, place) for piece, place in pieces if place is not None] == [
        *(("She", 0), ("could", 1), ("n't", 2), ("leave", 3), (",", 4), ("Tom", 6))
    ]
    assert "".join(piece for piece, _ in pieces) == "She couldn't leave, Tom"
    assert align_words("", ["a"]) == []


COLOURED = result("The cat slept.", [("the", 1.0, [], []), ("cat", 0.1, [{**PLACE, "word": "cat", "share": 0.9}], [])])


def colours_of(monkeypatch, **settings) -> str:
    """What is printed of an ending with a copied word, with the escape codes of its colours."""
    screen = io.StringIO()
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    environment = {"TERM": "xterm-256color", **settings.pop("environment", {})}
    console = Console(file=screen, width=80, highlight=False, _environ=environment, **settings)
    monkeypatch.setattr(printing, "Console", lambda **_: console)
    printing.print_endings("A cat.", [{**COLOURED, "evidence": [], "knowledge_effect": None}])
    return screen.getvalue()


def test_words_are_coloured_by_source_on_a_terminal_with_a_key(monkeypatch):
    shown = colours_of(monkeypatch, force_terminal=True)
    assert "\x1b[1;32mcat\x1b[0m" in shown and "words from:" in shown
    assert re.search(r"vocabulary · \x1b\[32mstory\x1b\[0m · \x1b\[36mknowledge", shown)


@pytest.mark.parametrize("settings", [{"force_terminal": True, "environment": {"NO_COLOR": "1"}}, {}])
def test_there_are_no_colours_with_no_color_or_in_a_file(monkeypatch, settings):
    shown = colours_of(monkeypatch, **settings)
    assert not re.search(r"\x1b\[(\d;)?3\dm", shown) and "words from:" not in shown
    assert re.sub(r"\x1b\[[\d;]*m", "", shown).splitlines()[1] == "  The cat slept.  (-0.50 a word)"
