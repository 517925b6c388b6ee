"""The files beside the vocabulary, and the vocabulary itself, read and checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def read_json(path: str) -> dict[str, Any]:
    """A JSON object from a file."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON: {error}.") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} must hold a JSON object; got {type(content).__name__}.")
    return content


def read_forms(path: str) -> dict[str, str]:
    """How words in lower case are usually printed."""
    forms = read_json(path)
    for word, form in forms.items():
        if not isinstance(form, str):
            raise ValueError(f"{path}: the form of {word!r} must be a string; got {shortened(form)}.")
    return forms


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """A JSON object to a file, an entry a line."""
    path.write_text(json.dumps(content, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")


def check_vocabulary(ids: dict[str, Any], origin: str) -> dict[str, int]:
    """Ids must be 0, 1, 2, ...: a hole or a double would give words the vectors of others."""
    # By type, too: True and 1.0 equal 1, and are no ids.
    is_whole = all(type(index) is int for index in ids.values())
    if not is_whole or sorted(ids.values()) != list(range(len(ids))):
        raise ValueError(f"{origin}: ids must be the whole numbers from 0 to {len(ids) - 1}, each once.")
    return ids


def shortened(value: Any) -> str:
    """A value as an error message shows it."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
