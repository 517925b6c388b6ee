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
