"""Options that several commands have: spelled and explained in one place."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_MODEL_HELP = "Directory of a model, or its name on the Hub; by default the package's own."

ModelArgument = Annotated[str | None, typer.Argument(help=_MODEL_HELP)]
ModelOption = Annotated[str | None, typer.Option(help=_MODEL_HELP)]
NumBeams = Annotated[int | None, typer.Option(min=1, help="Beams; the model's own setting unless given.")]
Data = Annotated[
    str, typer.Option(help="Stories: whatever `storyend prepare --stories` takes, or a directory that it has written.")
]
Split = Annotated[str, typer.Option(help="Which of their splits.")]
MaxStories = Annotated[int | None, typer.Option(min=1, help="The first so many stories only.")]
Confidence = Annotated[
    int, typer.Option(min=0, help="Resamples for confidence intervals and tests; 0 means no intervals.")
]
Baseline = Annotated[
    Path | None, typer.Option(help="Endings of another system for the same stories, to test the differences.")
]
ConstantEnding = Annotated[
    str | None, typer.Option(help="What the trivial system writes; by default the best constant training ending.")
]
DatasetId = Annotated[
    str | None, typer.Option(help="The stories' id on the Hub, for its files; by default the name of DATA.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print it as JSON.")]
