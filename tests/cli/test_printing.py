"""Markdown for people and for programs: nothing of a table is ever cut off."""

import io

import pytest
from rich.console import Console

from hf_storyend.cli import printing

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


def test_text_is_printed_as_it_is(capsys):
    printing.print_line("a [bold]model[/] :cat: of 3")
    evidence = {"head": "cat", "relation": "IsA", "tail": "pet", "weight": 0.5, "word": "cat"}
    printing.print_endings(":cat: [b]", [{"ending": "It slept. [/]", "score": -0.5, "evidence": [evidence]}])
    printed = capsys.readouterr().out
    assert "a [bold]model[/] :cat: of 3\n:cat: [b]\n  It slept. [/]  (-0.50 a word)\n" in printed
    assert "50.0%  cat IsA pet  at 'cat'" in printed
