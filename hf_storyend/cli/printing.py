"""What commands print: pages of Markdown, JSON, endings, lists of files and errors; nothing else prints."""

from __future__ import annotations

import json
from itertools import groupby
from typing import Any

import typer
from rich.console import Console
from rich.markdown import Markdown
from rich.markup import escape
from rich.table import Table

from ..terminal import printable, printable_json


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


def print_endings(story: str, endings: list[dict[str, Any]]) -> None:
    """Print a story and its endings, each with score and evidence."""
    console = Console(highlight=False, emoji=False)
    console.print(escape(printable(story)), style="dim", soft_wrap=True)
    for ending in endings:
        score = f"[dim]({ending['score']:.2f} a word)[/]"
        console.print(f"  [bold green]{escape(printable(ending['ending']))}[/]  {score}", soft_wrap=True)
        for item in ending["evidence"]:
            triple = escape(printable(f"{item['head']} {item['relation']} {item['tail']}"))
            console.print(f"      {item['weight']:6.1%}  {triple}  [dim]at {escape(item['word'])!r}[/]")
    console.print()


def _min_width(text: str) -> int:
    """Return the width of the widest table if no word is broken."""
    blocks = groupby(text.splitlines(), key=lambda line: line.startswith("|"))
    return max((_table_width(list(rows)) for is_table, rows in blocks if is_table), default=0)


def _table_width(rows: list[str]) -> int:
    columns = zip(*(row.strip("|").split("|") for row in rows), strict=False)
    # Each column has a space at either side.
    return sum(2 + max(len(word) for cell in column for word in cell.split() or [""]) for column in columns)
