"""Markdown on the screen."""

from __future__ import annotations

from itertools import groupby

import typer
from rich.console import Console
from rich.markdown import Markdown


def print_page(text: str) -> None:
    """Set in type on a terminal; as it is for files and programs, and where columns would be too narrow for words."""
    console = Console()
    if console.is_terminal and _least_width(text) <= console.width:
        console.print(Markdown(text))
        return
    typer.echo(text)


def _least_width(text: str) -> int:
    """What the widest table needs if no word is cut."""
    blocks = groupby(text.splitlines(), key=lambda line: line.startswith("|"))
    return max((_width_of_table(list(rows)) for is_table, rows in blocks if is_table), default=0)


def _width_of_table(rows: list[str]) -> int:
    columns = zip(*(row.strip("|").split("|") for row in rows), strict=False)
    # Each column has a space at either side.
    return sum(2 + max(len(word) for cell in column for word in cell.split() or [""]) for column in columns)
