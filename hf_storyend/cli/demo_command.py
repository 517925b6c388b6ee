"""`storyend demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape


def demo(
    model: Annotated[
        list[str] | None,
        typer.Argument(help="Directories of models, or their names on the Hub; the one of the package unless given."),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen at: 0.0.0.0 lets other machines of the network in.")
    ] = "127.0.0.1",
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Port to listen at; the first free one from 7860 on.")
    ] = None,
    share: Annotated[
        bool, typer.Option("--share", help="Let anyone in, through a tunnel of Gradio's servers.")
    ] = False,
    open_browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = True,
    space: Annotated[
        Path | None, typer.Option(help="Start nothing; write a Hugging Face Space to this directory, ready to push.")
    ] = None,
) -> None:
    """
    Try models in a browser: a story in, endings out, with the evidence for each word, pictures and own triples.

    Several models can be chosen among. Ctrl+C stops it.

    Example: `storyend demo my_model other_model --port 8000`
    """
    from hf_storyend.demo import launch_demo, write_space

    console = Console(highlight=False)
    if space is not None:
        write_space(space, model or ())
        console.print(escape(f"Written. To push it: hf upload OWNER/NAME {space} --repo-type space"), soft_wrap=True)
        return
    page, address = launch_demo(model or (), host=host, port=port, share=share, open_browser=open_browser)
    console.print(escape(f"Story endings at {address} (Ctrl+C stops)"), soft_wrap=True)
    page.block_thread()
