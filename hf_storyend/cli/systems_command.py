"""`storyend systems`."""

from __future__ import annotations

import json
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from .options import AsJson


def systems(as_json: AsJson = False) -> None:
    """
    List the systems that can be trained and compared, with their number of weights at the sizes of the paper.

    Example: `storyend systems`
    """
    from hf_storyend.systems import SYSTEMS, count_parameters

    rows: list[dict[str, Any]] = [
        {
            "name": system.name,
            "paper_name": system.paper_name,
            "description": system.description,
            "settings": system.settings,
            "parameters": count_parameters(system),
        }
        for system in SYSTEMS.values()
    ]
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
        return
    table = Table("system", "in the paper", "what it does", box=None)
    table.add_column("parameters", justify="right")
    for row in rows:
        table.add_row(row["name"], row["paper_name"] or "-", row["description"], f"{row['parameters']:,}")
    Console().print(table)
