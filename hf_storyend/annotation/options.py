"""
Options of `storyend annotate sample` and `storyend annotate report`.

This module imports only the standard library: the command line reads its help from here.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..options import check_at_least, option


@dataclass(frozen=True)
class AnnotationSampleOptions:
    """Options of `storyend annotate sample`: whose endings are scored, how many, and by how many annotators."""

    endings: tuple[str, ...] = option(
        (),
        "JSON Lines file of one system: `context`, `ending`, optionally `reference`. Repeat it for more systems, with "
        "the same stories in the same order. Default: endings that the package's model generates for its own stories.",
    )
    output_dir: str = option("human", "Directory to write; it must be new or empty.")
    names: tuple[str, ...] = option(
        (), "Name of the system of each file; default: the names of the files.", flag="name"
    )
    num_stories: int | None = option(None, "Stories to sample; default: 200, as in the paper, or all if fewer.")
    num_annotators: int = option(3, "Annotators of every ending, an odd number.")
    references: bool = option(False, "Score the `reference` endings, too, blinded like a system.")
    seed: int = option(0, "Seed of the sample and of all orders.")

    def __post_init__(self) -> None:
        check_at_least(self, 1, "num_stories", optional=True)
        check_at_least(self, 1, "num_annotators")


@dataclass(frozen=True)
class AnnotationReportOptions:
    """Options of `storyend annotate report`: the key of a sample and the scored sheets."""

    key: str = option("human/key.json", "The `key.json` of the sample.")
    sheets: tuple[str, ...] = option(
        (), "Scored sheets of all annotators, as in `--sheets *.csv`; default: those in `sheets/` beside the key."
    )
    more_sheets: tuple[str, ...] = option((), "More scored sheets.", positional=True, metavar="SHEETS")
    output_dir: str | None = option(
        None, "Directory for `report.md`, `report.json` and `scores.png`; default: nothing is saved."
    )
    json: bool = option(False, "Print JSON instead of a page.")
