"""What commands print: pages of Markdown, JSON, endings and lists of files."""

from __future__ import annotations

import json
from itertools import groupby
from typing import Any

import typer
from rich.console import Console
from rich.markdown import Markdown
from rich.markup import escape


def print_page(text: str) -> None:
    """Print Markdown: rendered on a terminal, as it is to files and pipes and where tables don't fit the terminal."""
    console = Console()
    if console.is_terminal and _min_width(text) <= console.width:
        console.print(Markdown(text))
        return
    typer.echo(text)


def print_json(content: Any) -> None:
    """Print anything that JSON can hold."""
    typer.echo(json.dumps(content, indent=1, ensure_ascii=False))


def print_line(text: str) -> None:
    """Print text without markup, highlighting or line breaks."""
    Console(highlight=False, emoji=False).print(escape(text), soft_wrap=True)


def print_endings(story: str, endings: list[dict[str, Any]]) -> None:
    """Print a story and its endings, each with score and evidence."""
    console = Console(highlight=False, emoji=False)
    console.print(escape(story), style="dim", soft_wrap=True)
    for ending in endings:
        score = f"[dim]({ending['score']:.2f} a word)[/]"
        console.print(f"  [bold green]{escape(ending['ending'])}[/]  {score}", soft_wrap=True)
        for item in ending["evidence"]:
            triple = escape(f"{item['head']} {item['relation']} {item['tail']}")
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
