"""Commands on data and training: `storyend prepare`, `train`, `systems`, `compare` and `verify`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.table import Table

from ..comparison.options import ComparisonOptions
from ..data.options import PrepareOptions
from ..training.options import TrainingOptions, VerifyOptions
from .parameters import AsJson
from .printing import print_json, print_line, print_page, print_table

if TYPE_CHECKING:
    from ..manifest import Verification


def prepare(options: PrepareOptions, as_json: AsJson = False) -> None:
    """
    Turn stories, triples and word vectors into a directory that training starts from.

    It holds the tokenizer with its knowledge, an untrained model, the tokenised stories and a report. The same inputs
    a second time are a cache hit. Without options: the stories and triples of the package.

    Example: `storyend prepare --stories rocstories.csv --conceptnet conceptnet-assertions-5.7.0.csv.gz --glove
    glove.6B.200d.txt --num_train 90000 --output_dir prepared`
    """
    from .. import prepare as run

    report = run(options)
    if as_json:
        print_json(report)
        return
    print_page((Path(options.output_dir) / "report.md").read_text(encoding="utf-8"))
    state = "exists already, with the same inputs" if report["cached"] else "is ready"
    print_line(f"\n{options.output_dir} {state}.")


def train(options: TrainingOptions) -> None:
    """
    Train a model, evaluate it and save it with its tokenizer and card; an interrupted run resumes when started again.

    Example: `storyend train --config options.yaml --data_dir prepared --output_dir trained --max_steps 1000`
    """
    from ..training import run_as_program
    from ..training import train as run

    run_as_program(lambda: run(options))


def read_training_file(path: str, **typed: Any) -> TrainingOptions:
    """Return the training options of a file, with those that were typed in place of its own."""
    from ..training import read_options

    return read_options(path, **typed)


def systems(as_json: AsJson = False) -> None:
    """
    List the systems that can be trained and compared, with their number of parameters at the sizes of the paper.

    Example: `storyend systems`
    """
    from ..systems import SYSTEMS, count_parameters

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
        print_json(rows)
        return
    table = Table("system", "in the paper", "description", box=None)
    table.add_column("parameters", justify="right")
    for row in rows:
        table.add_row(row["name"], row["paper_name"] or "-", row["description"], f"{row['parameters']:,}")
    print_table(table)


def compare(options: ComparisonOptions, as_json: AsJson = False) -> None:
    """
    Train and evaluate systems under one equal budget and write the table of the paper.

    The same command resumes an interrupted comparison, and takes over what `storyend train` has made of a row in
    OUTPUT_DIR/systems/ROW with the same options. Started again meanwhile, on the same machine or on another one that
    shares the directory, it takes the rows that nobody works on.

    Example: `storyend compare --systems seq2seq,ie,ie.state --data_dir prepared --max_minutes 60`
    """
    from ..comparison import compare as run
    from ..training import run_as_program

    def work() -> None:
        comparison = run(options)
        if as_json:
            print_json(comparison)
            return
        print_page((Path(options.output_dir) / "comparison.md").read_text(encoding="utf-8"))

    run_as_program(work)


def verify(options: VerifyOptions) -> None:
    """
    Check that a model, checkpoint, run, comparison or prepared data is what was written: every file, by checksum.

    The exit code is 0 if all files are, and 1 if any is damaged or missing.

    Example: `storyend verify my_model`
    """
    from .. import manifest

    verified = manifest.verify(options.directory)
    if options.json:
        print_json([asdict(found) for found in verified])
    else:
        for found in verified:
            _print_verification(found)
    if any(found.damage for found in verified):
        raise typer.Exit(1)


def _print_verification(found: Verification) -> None:
    verdict = "damaged" if found.damage else f"intact, {found.num_files} files"
    print_line(f"{found.path}: {found.kind or 'unknown'}, {verdict}")
    for problem in found.damage:
        print_line(f"  {problem}")
    for name in found.added:
        print_line(f"  added since: {name}")
