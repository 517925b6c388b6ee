"""What commands print: pages of Markdown, JSON, endings, lists of files and errors; nothing else prints."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import typer
from rich.console import Console
from rich.markdown import Markdown
from rich.markup import escape
from rich.table import Table

from ..explanation.result import Effect, SourceKind, Sources
from ..explanation.wording import align_words, effect_text, pointed_sources, source_text
from ..terminal import printable, printable_json

_COLORS: dict[SourceKind, str | None] = {"vocabulary": None, "story": "green", "knowledge": "cyan"}
# What the colours mean; where there are none, the lines below an ending say it all.
_KEY = " · ".join(f"[{color}]{kind}[/]" if color else kind for kind, color in _COLORS.items())
# Sources that are worth a word: their lowest share, and how many.
_MIN_SHARE, _MAX_SOURCES = 0.1, 3


def print_page(text: str) -> None:
    """Print Markdown: rendered on a terminal, as it is to files and pipes and where tables don't fit the terminal."""
    text, console = printable(text), Console()
    if console.is_terminal and _min_width(text) <= console.width:
        console.print(Markdown(text))
        return
    typer.echo(text)


def print_text(text: str) -> None:
    """Print text as it is, whatever the terminal."""
    typer.echo(printable(text))


def print_json(content: Any) -> None:
    """Print anything that JSON can hold; a string is JSON already."""
    text = content if isinstance(content, str) else json.dumps(content, indent=1, ensure_ascii=False)
    typer.echo(printable_json(text))


def print_line(text: str) -> None:
    """Print text without markup, highlighting or line breaks."""
    Console(highlight=False, emoji=False).print(escape(printable(text)), soft_wrap=True)


def print_table(table: Table) -> None:
    """Print a table of the package's own texts."""
    Console().print(table)


def print_error(message: str) -> None:
    """Print on standard error what is wrong."""
    console = Console(stderr=True, highlight=False, emoji=False)
    console.print(f"[bold red]Error:[/] {escape(printable(message))}", soft_wrap=True)


def print_on_stderr(text: str) -> None:
    """Print text on standard error, as it is."""
    typer.echo(printable(text), err=True)


def print_lines(text: str) -> None:
    """Print whole lines of JSON at once; control characters are written as JSON writes them."""
    typer.echo("\n".join(map(printable_json, text.split("\n"))), nl=False)


def print_endings(story: str, endings: list[dict[str, Any]], notes: Sequence[str] = ()) -> None:
    """
    Print a story, its endings, each with its score, what its words came from and effects of triples, and notes.

    On a terminal, words are coloured by source, unless NO_COLOR is set.
    """
    console = Console(highlight=False, emoji=False)
    console.print(_literal(story), style="dim", soft_wrap=True)
    for ending in endings:
        words = [(word["word"], Sources.from_dict(word)) for word in ending["words"]]
        score = f"[dim]({ending['score']:.2f} a word)[/]"
        console.print(f"  [bold]{_colored_ending(ending['ending'], words)}[/]  {score}", soft_wrap=True)
        for line in (*_source_lines(words), *_effect_lines(ending)):
            console.print(f"      {line}", soft_wrap=True)
    if console.color_system is not None and not console.no_color:
        console.print(f"      [dim]words from:[/] {_KEY}", soft_wrap=True)
    for note in notes:
        console.print(f"  [yellow]{_literal(note)}[/]", soft_wrap=True)
    console.print()


def _colored_ending(text: str, words: list[tuple[str, Sources]]) -> str:
    """Return the ending as markup: words from the story and from knowledge have colours."""
    colors = [_COLORS[sources.main] for _, sources in words]
    pieces = align_words(text, [word for word, _ in words])
    return "".join(_colored(piece, None if place is None else colors[place]) for piece, place in pieces)


def _colored(text: str, color: str | None) -> str:
    return f"[{color}]{_literal(text)}[/]" if color else _literal(text)


def _source_lines(words: list[tuple[str, Sources]]) -> Iterator[str]:
    """Yield, once for each word that did not just come from the vocabulary, what it came from."""
    described: set[str] = set()
    for word, sources in words:
        named = pointed_sources(sources, _MIN_SHARE)[:_MAX_SOURCES]
        if named and word not in described:
            described.add(word)
            yield f"{_colored(word, _COLORS[sources.main])}: {_literal(', '.join(map(source_text, named)))}"


def _effect_lines(ending: dict[str, Any]) -> Iterator[str]:
    """Yield how likely the ending is without each triple that it came from, and without all triples."""
    measured = {
        f"{item['head']} {item['relation']} {item['tail']}": Effect(item["effect"], item["factor"])
        for item in ending["evidence"]
    }
    knowledge = ending["knowledge_effect"]
    if not measured:
        without = f"; without all triples it is {effect_text(Effect(**knowledge))}" if knowledge else ""
        yield f"[dim]No word of this ending came from a triple{without}.[/]"
        return
    for name, effect in measured.items():
        yield f"[dim]without[/] {_literal(name)} [dim]the ending is {effect_text(effect)}[/]"
    yield f"[dim]without all triples the ending is {effect_text(Effect(**knowledge))}[/]"


def _literal(text: str) -> str:
    """Return text of others such that it is printed as it is, control characters visibly."""
    return escape(printable(text))


def _min_width(text: str) -> int:
    """Return the width of the widest table if no word is broken."""
    blocks = groupby(text.splitlines(), key=lambda line: line.startswith("|"))
    return max((_table_width(list(rows)) for is_table, rows in blocks if is_table), default=0)


def _table_width(rows: list[str]) -> int:
    columns = zip(*(row.strip("|").split("|") for row in rows), strict=False)
    # Each column has a space at either side.
    return sum(2 + max(len(word) for cell in column for word in cell.split() or [""]) for column in columns)
