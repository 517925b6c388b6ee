"""`storyend card`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def card(
    model: Annotated[Path, typer.Argument(help="Directory of a model, with what its run and evaluation left there.")],
    output: Annotated[
        Path | None, typer.Option(help="Write it there, such as MODEL/README.md; else print it.")
    ] = None,
) -> None:
    """
    Make a model card from what was measured: by the training run, and by `storyend evaluate --output MODEL`.

    Example: `storyend card my_model --output my_model/README.md`
    """
    from hf_storyend.directories import replace_file
    from hf_storyend.hub import render_card_of

    text = render_card_of(model)
    if output is None:
        typer.echo(text)
    else:
        replace_file(output, text)
