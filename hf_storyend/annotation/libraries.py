"""The libraries that only a report needs."""

from __future__ import annotations

import importlib
from typing import Any


def statistics_library(name: str) -> Any:
    """A module of scipy, statsmodels or matplotlib, loaded when it is used."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"The report of an annotation needs {name.split('.')[0]}. "
            'Install it with `pip install "hf_storyend[evaluation]"`.'
        ) from error
