"""`storyend annotate sample` and `storyend annotate report`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markdown import Markdown
from rich.markup import escape

from .system_names import names_of_files

annotate = typer.Typer(
    help="Let people score endings: draw blinded sheets, and read them back.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


@annotate.command()
def sample(
    endings: Annotated[
        list[Path],
        typer.Option(
            help="JSON Lines of one system: `context`, `ending`, maybe `reference`. Give it again for more systems, "
            "with the same stories in the same order."
        ),
    ],
    output: Annotated[Path, typer.Option(help="Directory to write; it must be new or empty.")],
    names: Annotated[
        list[str] | None,
        typer.Option(help="What the system of a file is called, in order; else like its file."),
    ] = None,
    num_stories: Annotated[int, typer.Option(min=1, help="Stories to draw (the paper: 200).")] = 200,
    annotators: Annotated[int, typer.Option(min=1, help="Annotators of every ending, an odd number.")] = 3,
    references: Annotated[
        bool, typer.Option("--references", help="Let the `reference` endings be scored too, blinded like a system.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Of the draw and all orders.")] = 0,
) -> None:
    """
    Draw stories and write blinded, shuffled sheets for annotators.

    `sheets/` is for them: a CSV sheet each, `annotate.html` to score in a browser, `guidelines.md`. `key.json` tells
    the systems behind the endings: keep it to yourself.

    Example: `storyend annotate sample --endings ie.jsonl --endings seq2seq.jsonl --num-stories 200 --output human`
    """
    from hf_storyend.annotation import draw_sample, read_systems, reference_system, write_sample

    systems = read_systems(endings, names or names_of_files(endings))
    if references:
        systems.append(reference_system(systems[0]))
    drawn = draw_sample(systems, num_stories, annotators, seed)
    write_sample(drawn, output)
    console, folder = Console(), escape(str(output))
    console.print(f"{len(drawn.items):,} endings of {len(systems)} systems for each of {annotators} annotators.")
    console.print(f"Give them [bold]{folder}/sheets[/], keep [bold]{folder}/key.json[/] to yourself.")


@annotate.command()
def report(
    key: Annotated[Path, typer.Option(help="The `key.json` of the sample.")],
    sheets: Annotated[list[Path], typer.Option(help="Scored sheets of all annotators, as in `--sheets *.csv`.")],
    more_sheets: Annotated[list[Path] | None, typer.Argument(metavar="[SHEETS]...", help="More of them.")] = None,
    output: Annotated[
        Path | None, typer.Option(help="Directory to write `report.md`, `report.json` and `scores.png` to.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """
    Read scored sheets back: majority vote, mean scores, agreement, sign tests and kinds of error.

    What is missing, double or out of range in the sheets is listed, all at once, with annotator, row and column.

    Example: `storyend annotate report --key human/key.json --sheets human/sheets/*.csv --output human/report`
    """
    from hf_storyend.annotation import build_report, describe_report, draw_scores, read_judgements, read_key

    drawn = read_key(key)
    numbers = build_report(drawn, read_judgements(drawn, [*sheets, *(more_sheets or [])]))
    page, content = describe_report(numbers), json.dumps(numbers, indent=1, ensure_ascii=False)
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        (output / "report.md").write_text(page, encoding="utf-8")
        (output / "report.json").write_text(content + "\n", encoding="utf-8")
        draw_scores(numbers, output / "scores.png")
    if as_json:
        typer.echo(content)
        return
    Console().print(Markdown(page))
