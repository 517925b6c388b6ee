"""`storyend annotate sample` and `storyend annotate report`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from .endings import endings_or_default
from .options import AsJson
from .pages import print_page
from .system_names import names_of_files

# As in the paper.
_NUM_STORIES = 200

annotate = typer.Typer(
    help="Let people score endings: draw blinded sheets, and read them back.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


@annotate.command()
def sample(
    endings: Annotated[
        list[Path] | None,
        typer.Option(
            help="JSON Lines of one system: `context`, `ending`, maybe `reference`. Give it again for more systems, "
            "with the same stories in the same order. By default what the package's own model writes for its stories."
        ),
    ] = None,
    output: Annotated[Path, typer.Option(help="Directory to write; it must be new or empty.")] = Path("human"),
    name: Annotated[
        list[str] | None, typer.Option(help="What the system of each file is called; by default like its file.")
    ] = None,
    num_stories: Annotated[
        int | None, typer.Option(min=1, help="Stories to draw; by default 200, as in the paper, or all if fewer.")
    ] = None,
    num_annotators: Annotated[int, typer.Option(min=1, help="Annotators of every ending, an odd number.")] = 3,
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

    with endings_or_default(endings, max_stories=num_stories or _NUM_STORIES) as files:
        systems = read_systems(files, name or names_of_files(files))
    if references:
        systems.append(reference_system(systems[0]))
    drawn = draw_sample(systems, num_stories or min(_NUM_STORIES, len(systems[0].endings)), num_annotators, seed)
    write_sample(drawn, output)
    console, folder = Console(), escape(str(output))
    counted = "1 system" if len(systems) == 1 else f"{len(systems)} systems"
    console.print(f"{len(drawn.items):,} endings of {counted} for each of {num_annotators} annotators.")
    console.print(f"Give them [bold]{folder}/sheets[/], keep [bold]{folder}/key.json[/] to yourself.")


@annotate.command()
def report(
    key: Annotated[Path, typer.Option(help="The `key.json` of the sample.")] = Path("human/key.json"),
    sheets: Annotated[
        list[Path] | None,
        typer.Option(help="Scored sheets of all annotators, as in `--sheets *.csv`; by default those beside the key."),
    ] = None,
    more_sheets: Annotated[list[Path] | None, typer.Argument(metavar="[SHEETS]...", help="More of them.")] = None,
    output: Annotated[
        Path | None, typer.Option(help="Directory to write `report.md`, `report.json` and `scores.png` to.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """
    Read scored sheets back: majority vote, mean scores, agreement, sign tests and kinds of error.

    What is missing, double or out of range in the sheets is listed, all at once, with annotator, row and column.

    Example: `storyend annotate report --key human/key.json --sheets human/sheets/*.csv --output human/report`
    """
    from hf_storyend.annotation import build_report, describe_report, draw_scores, read_judgements, read_key

    drawn = read_key(key)
    scored = [*(sheets or []), *(more_sheets or [])] or sorted((key.parent / "sheets").glob("*.csv"))
    numbers = build_report(drawn, read_judgements(drawn, scored))
    page, content = describe_report(numbers), json.dumps(numbers, indent=1, ensure_ascii=False)
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        (output / "report.md").write_text(page, encoding="utf-8")
        (output / "report.json").write_text(content + "\n", encoding="utf-8")
        draw_scores(numbers, output / "scores.png")
    if as_json:
        typer.echo(content)
        return
    print_page(page)
