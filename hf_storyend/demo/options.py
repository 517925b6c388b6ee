"""Options of `storyend demo`."""

from __future__ import annotations

from dataclasses import dataclass

from ..options import option


@dataclass(frozen=True)
class DemoOptions:
    """Which models the demo offers, and where it is served or written to."""

    models: tuple[str, ...] = option(
        (), "Directories of models, or their names on the Hub; default: the package's model.", positional=True
    )
    host: str = option("127.0.0.1", "Address to listen at; 0.0.0.0 serves the whole network.")
    port: int | None = option(None, "Port to listen at; default: the first free one from 7860 on.")
    share: bool = option(False, "Serve a public address through a tunnel of Gradio's servers.")
    open_browser: bool = option(True, "Open the page in a browser.")
    space_dir: str | None = option(
        None, "Write a Hugging Face Space, ready to push, to this directory instead of serving the demo."
    )

    def __post_init__(self) -> None:
        if self.port is not None and not 1 <= self.port <= 65535:
            raise ValueError(f"`port` must be a whole number from 1 to 65535; got {self.port!r}.")
