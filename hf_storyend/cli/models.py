"""Which model a command means."""

from __future__ import annotations

import re
from pathlib import Path

# A dot before the slash means a path: `../model`.
_HUB_NAME = re.compile(r"[\w.-]*\w/[\w.-]+")


def find_model(name: str | None) -> str:
    """A directory that is there, or what may be a name on the Hub; the package's own model if none was given."""
    if name is None:
        from hf_storyend import default_model

        return default_model()
    if not Path(name).is_dir() and not _HUB_NAME.fullmatch(name):
        raise ValueError(
            f"`{name}` is no model: there is no such directory, and a name on the Hub has its owner before it, "
            "like `owner/name`."
        )
    return name
