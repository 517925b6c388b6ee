"""`storyend compare`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from .options import AsJson
from .pages import print_page


def compare(
    systems: Annotated[str, typer.Option(help="Names with commas between (`storyend systems`), or `all`.")] = "all",
    data: Annotated[
        Path | None,
        typer.Option(help="Directory that `storyend prepare` wrote; by default the stories of the package."),
    ] = None,
    output: Annotated[Path, typer.Option(help="Directory for the runs and the table.")] = Path("compared"),
    max_steps: Annotated[int | None, typer.Option(min=1, help="Budget of each system, in updates.")] = None,
    max_minutes: Annotated[float | None, typer.Option(min=0.01, help="Budget of each system, in minutes.")] = None,
    options: Annotated[
        Path | None, typer.Option(help="YAML or JSON file with further options of `examples/train.py`.")
    ] = None,
    split: Annotated[str, typer.Option(help="Stories to evaluate on.")] = "test",
    num_beams: Annotated[int, typer.Option(min=1, help="Beams when endings are written; 1 is greedy.")] = 1,
    max_stories: Annotated[int | None, typer.Option(min=1, help="Evaluate on the first so many only.")] = None,
    as_json: AsJson = False,
) -> None:
    """
    Train and evaluate systems under one equal budget and write the table of the paper.

    Stopped and started again, it goes on from where it was.

    Example: `storyend compare --systems seq2seq,ie,ie-msa-ca --data prepared --max-minutes 60 --output compared`
    """
    from hf_storyend.comparison import ComparisonOptions
    from hf_storyend.comparison import compare as run
    from hf_storyend.systems import SYSTEMS
    from hf_storyend.training import parse_options

    words = [str(options)] if options else []
    given: dict[str, Any] = {"prepared": data, "max_steps": max_steps, "max_minutes": max_minutes}
    words += [word for name, value in given.items() if value is not None for word in (f"--{name}", str(value))]
    if max_minutes is not None and max_steps is None:
        # The time alone decides.
        words += ["--max_steps", str(10**9)]
    chosen = tuple(SYSTEMS) if systems == "all" else tuple(name.strip() for name in systems.split(","))
    comparison = run(
        ComparisonOptions(
            systems=chosen,
            training=parse_options(words),
            split=split,
            generation={"num_beams": num_beams},
            max_stories=max_stories,
        ),
        output,
        say=Console(stderr=True).print,
    )
    if as_json:
        typer.echo(json.dumps(comparison, indent=1))
        return
    print_page((output / "comparison.md").read_text(encoding="utf-8"))
