"""`storyend score`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from .models import find_model
from .options import AsJson, Baseline, Confidence, ConstantEnding, Data, DatasetId, MaxStories, Split
from .pages import print_page


def score(
    endings: Annotated[
        list[Path] | None,
        typer.Option(
            help="Endings: text with one a line, or JSON Lines with `ending`. Give it again for more systems. By "
            "default those of the package's own model."
        ),
    ] = None,
    data: Data = "embedded",
    split: Split = "test",
    name: Annotated[
        list[str] | None,
        typer.Option(help="What the table calls each system; by default like its file."),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Model whose knowledge the use of knowledge is measured with.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Directory for numbers, tables and files for the Hub, one inside it a system.")
    ] = None,
    max_stories: MaxStories = None,
    confidence: Confidence = 1000,
    baseline: Baseline = None,
    constant_ending: ConstantEnding = None,
    dataset_id: DatasetId = None,
    as_json: AsJson = False,
) -> None:
    """
    Score endings that any system wrote, with the metrics of `storyend evaluate` that need no model.

    Example: `storyend score --endings theirs.txt --endings ours.jsonl --data rocstories --name theirs --name ours`
    """
    from hf_storyend.evaluation import ScoreOptions, compare_in_table
    from hf_storyend.evaluation import score as run

    results = run(
        ScoreOptions(
            endings=tuple(map(str, endings or ())),
            data_dir=data,
            split=split,
            names=tuple(name or ()),
            model=None if model is None else find_model(model),
            output_dir=None if output is None else str(output),
            max_stories=max_stories,
            bootstrap_samples=confidence,
            baseline=None if baseline is None else str(baseline),
            constant_ending=constant_ending,
            dataset_id=dataset_id,
        )
    )
    if as_json:
        typer.echo(json.dumps({title: result.to_dict() for title, result in results.items()}, indent=1))
        return
    print_page(compare_in_table(results))
