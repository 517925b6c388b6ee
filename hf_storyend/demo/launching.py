"""Starting the page on this machine or on a Space."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from transformers.utils import logging

from .app import build_demo
from .examples import STORIES
from .libraries import gradio_library
from .pictures import clues_picture, ignore_missing_glyphs
from .requests import EndingRequest, read_sentences
from .writing import EndingWriter

_PARTS = Path(__file__).parent
# The last pages that were open, for each of which Gradio keeps what it shows.
_MAX_PAGES = 256


def launch_demo(
    models: Sequence[str] = (),
    *,
    host: str | None = None,
    port: int | None = None,
    share: bool | None = None,
    open_browser: bool = False,
) -> tuple[Any, str]:
    """
    Start the page and give it, as Gradio `Blocks`, with its address; `block_thread()` of it waits for Ctrl+C.

    Args:
        models: Directories of models, or names on the Hub; the model that comes with the package if there are none.
        host: Address to listen at; this machine only unless given, or set by `GRADIO_SERVER_NAME`.
        port: Port to listen at; the first free one from 7860 on unless given.
        share: Let anyone in by a tunnel of Gradio's servers; unless given, only where nothing else works, as in Colab.
        open_browser: Whether to open the page in a browser.
    """
    demo = build_demo(models)
    logging.disable_progress_bar()
    ignore_missing_glyphs()
    try:
        _, local_url, share_url = demo.launch(
            server_name=host,
            server_port=port,
            share=share,
            inbrowser=open_browser,
            prevent_thread_lock=True,
            quiet=True,
            **_page_settings(),
        )
    except OSError as error:
        if port is None or "empty port" not in str(error):
            raise
        raise OSError(f"Port {port} can't be used; maybe something uses it already: choose another.") from error
    # While a browser fetches the page, the model is read: the first visitor waits no longer than the second.
    _warm_up(demo.writer)
    return demo, share_url or local_url


def _warm_up(writer: EndingWriter) -> None:
    """Write once and draw once, so that all that takes long to load is loaded."""
    written = writer.write(EndingRequest(writer.systems[0], read_sentences(STORIES[0])))
    # Without matplotlib, whoever opens a picture is told.
    with suppress(ImportError):
        clues_picture(written.endings[0])


def _page_settings() -> dict[str, Any]:
    """Looks, keys, and nothing that is fetched from elsewhere or recorded."""
    gradio = gradio_library()
    # Fonts of the visitor's own machine: nothing to fetch. Grey that can be read.
    theme = gradio.themes.Default(
        primary_hue="blue", font=["system-ui", "sans-serif"], font_mono=["ui-monospace", "monospace"]
    ).set(
        block_info_text_color="*neutral_600",
        block_info_text_color_dark="*neutral_300",
        body_text_color_subdued="*neutral_600",
        body_text_color_subdued_dark="*neutral_300",
        button_primary_background_fill="*primary_700",
        button_primary_background_fill_hover="*primary_800",
    )
    return {
        "theme": theme,
        "css": (_PARTS / "page.css").read_text(encoding="utf-8"),
        "js": (_PARTS / "page.js").read_text(encoding="utf-8"),
        "footer_links": ["api"],
        "run_history": False,
        "ssr_mode": False,
        "state_session_capacity": _MAX_PAGES,
    }
