"""Options of `storyend demo`."""

from __future__ import annotations

from dataclasses import dataclass

from ..options import option


@dataclass(frozen=True)
class DemoOptions:
    """Options of `storyend demo`: which models it offers, and where it is served."""

    models: tuple[str, ...] = option(
        (),
        "Model directories or Hub names, to choose among; default: the model that comes with the package.",
        positional=True,
        metavar="MODEL",
    )
    host: str = option("127.0.0.1", "Address to listen at; 0.0.0.0 serves the whole network.")
    port: int | None = option(None, "Port to listen at; default: the first free one from 7860 on.")
    share: bool = option(False, "Serve a public address, through a tunnel of Gradio's servers.")
    open_browser: bool = option(True, "Open the page in a browser.", flag="open")
    space_dir: str | None = option(
        None, "Write a Hugging Face Space, ready to push, to this directory, and serve nothing.", flag="space"
    )

    def __post_init__(self) -> None:
        if self.port is not None and not 1 <= self.port <= 65535:
            raise ValueError(f"`port` must be a whole number from 1 to 65535; got {self.port!r}.")
