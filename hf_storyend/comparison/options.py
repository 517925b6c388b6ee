"""Options of `storyend compare`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..options import MAX_BOOTSTRAP_SAMPLES, check_at_least, check_at_most, check_finite_numbers, option
from .rows import VARIANTS, Row, parse_rows

_GROUP = "What is measured"


@dataclass(frozen=True)
class ComparisonOptions:
    """Options of a comparison: systems that are trained and evaluated under one equal budget."""

    systems: str = option(
        "all",
        "Rows of the table, comma-separated: systems (`storyend systems` lists them), `paper` for the paper's eight, "
        f"`all`. `ie.state` is a system in a variant ({', '.join(VARIANTS)}), `ie.seed1` with another seed.",
    )
    data_dir: str | None = option(
        None, "Directory written by `storyend prepare`; default: the stories that come with the package."
    )
    output_dir: str = option(
        "compared", "Directory for the runs, in `systems/ROW`, and the table; processes may share it."
    )
    max_steps: int | None = option(None, "Budget of each system, in updates.")
    max_minutes: float | None = option(None, "Budget of each system, in minutes of training.")
    options_file: str | None = option(None, "YAML or JSON file with further options of `storyend train`.")
    train: bool = option(True, "Train rows that are not finished; otherwise, they are left out.")
    split: str = option("test", "Split to evaluate on.", group=_GROUP)
    num_beams: int = option(1, "Beams for generating endings; 1: greedy.", group=_GROUP)
    max_new_tokens: int | None = option(
        None, "Maximum length of an ending; default: the model's own setting.", group=_GROUP
    )
    max_stories: int | None = option(None, "Evaluate on only the first N stories.", group=_GROUP)
    bootstrap_samples: int = option(
        1000, "Bootstrap samples for 95 % confidence intervals and paired tests; 0: neither.", group=_GROUP
    )
    cloze: str | None = option(None, "Story Cloze CSV file, for its accuracy.", group=_GROUP)
    ablations: bool = option(False, "Also measure perplexity under ablations.", group=_GROUP)
    published: str | None = option(
        None,
        "Directory that another machine's `--export_dir` has written: its rows are taken as finished, if they were "
        "trained in the same way. It may be this `--export_dir`.",
    )
    export_dir: str | None = option(
        None, "Also write what can be published of the finished rows to this directory: numbers, curves, endings."
    )

    def __post_init__(self) -> None:
        check_finite_numbers(self)
        check_at_least(self, 1, "num_beams")
        check_at_least(self, 0, "bootstrap_samples")
        check_at_most(self, bootstrap_samples=MAX_BOOTSTRAP_SAMPLES)
        check_at_least(self, 1, "max_steps", "max_new_tokens", "max_stories", optional=True)
        if self.max_minutes is not None and not self.max_minutes > 0:
            raise ValueError(f"`max_minutes` must be above 0; got {self.max_minutes}.")
        parse_rows(self.systems)

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows, in the order of the table."""
        return parse_rows(self.systems)

    def training_overrides(self) -> dict[str, Any]:
        """Return the training options that are set here; they take precedence over those of `options_file`."""
        given: dict[str, Any] = {
            "data_dir": self.data_dir,
            "max_steps": self.max_steps,
            "max_minutes": self.max_minutes,
        }
        if self.max_minutes is not None and self.max_steps is None:
            # Only the time limits the run.
            given["max_steps"] = 10**9
        return {name: value for name, value in given.items() if value is not None}
