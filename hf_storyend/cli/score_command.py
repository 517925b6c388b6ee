"""`storyend score`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from .endings import endings_or_default
from .models import find_model
from .options import AsJson, Baseline, Confidence, ConstantEnding, Data, DatasetId, MaxStories, Split
from .pages import print_page
from .system_names import names_of_files


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
    from hf_storyend.evaluation import EvaluationOptions, compare_in_table, save_evaluation, score_files

    options = EvaluationOptions(max_stories=max_stories, bootstrap_samples=confidence, constant_ending=constant_ending)
    with endings_or_default(endings, data, split, max_stories) as files:
        results = score_files(
            dict(zip(_checked_names(name, files, output), files, strict=True)),
            data,
            split=split,
            model_name=None if model is None else find_model(model),
            baseline=baseline,
            options=options,
        )
    if output is not None:
        for title, result in results.items():
            dataset = dataset_id or Path(data).stem
            save_evaluation(result, output / title, name=title, dataset_id=dataset, split=split)
    if as_json:
        typer.echo(json.dumps({title: result.to_dict() for title, result in results.items()}, indent=1))
        return
    print_page(compare_in_table(results))


def _checked_names(names: list[str] | None, files: Sequence[Path], output: Path | None) -> list[str]:
    """What the systems of the files are called; where results are written, a directory has that name."""
    names = names or names_of_files(files)
    if len(names) != len(files) or len(set(names)) < len(names):
        raise ValueError(f"`--name` must give {len(files)} different names, one for each file; got {names}.")
    if output is not None and any(Path(title).name != title for title in names):
        raise ValueError(f"`--name` must be names that can be directories inside {output}; got {names}.")
    return names
