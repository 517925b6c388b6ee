"""The libraries that only the demo needs."""

from __future__ import annotations

import importlib
import os
from typing import Any


def gradio_library() -> Any:
    """Gradio, loaded when the page is built."""
    # Unless told otherwise it keeps the times of the last 10,000 requests, and sums all of them up after each one.
    os.environ.setdefault("GRADIO_ANALYTICS_MAX_EVENTS", "64")
    os.environ.setdefault("GRADIO_ANALYTICS_CACHE_FREQUENCY", str(10**9))
    try:
        return importlib.import_module("gradio")
    except ImportError as error:
        raise ImportError('The demo needs gradio. Install it with `pip install "hf_storyend[demo]"`.') from error
