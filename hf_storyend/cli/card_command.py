"""`storyend card`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def card(
    model: Annotated[
        Path | None,
        typer.Argument(
            help="Directory of a model, with what its run and evaluation left there; by default the card that the "
            "package's own model has."
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Write it there, such as MODEL/README.md; else print it.")
    ] = None,
) -> None:
    """
    Make a model card from what was measured: by the training run, and by `storyend evaluate --output MODEL`.

    Example: `storyend card my_model --output my_model/README.md`
    """
    from hf_storyend import default_model
    from hf_storyend.files import atomic_write
    from hf_storyend.hub import render_card_of
    from hf_storyend.hub.card import card_of

    # The files that the card of the package's model was made from are not part of the package.
    text = card_of(Path(default_model())) if model is None else render_card_of(model)
    if output is None:
        typer.echo(text)
    else:
        atomic_write(output, text)
