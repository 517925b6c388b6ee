"""Explanations as files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import get_args

from ..directories import replace_file
from .counterfactual_result import Counterfactual
from .drawing import plot_library
from .result import Explanation, Format

FORMATS: tuple[Format, ...] = get_args(Format)
_TEXTS: dict[str, Callable[[Explanation], str]] = {
    "json": Explanation.to_json,
    "md": Explanation.to_markdown,
    "html": Explanation.to_html,
}


def save_explanation(explanation: Explanation, folder: str | Path, formats: Sequence[Format] = FORMATS) -> list[Path]:
    """
    Write an explanation to a directory: `explanation.json`, `explanation.md`, `explanation.html`, and the pictures
    `clues` and `attention` as `.svg` and `.png`. Gives the files written.
    """
    folder = Path(folder)
    check_formats(formats)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name in dict.fromkeys(formats):
        if name in _TEXTS:
            written.append(folder / f"explanation.{name}")
            replace_file(written[-1], _TEXTS[name](explanation))
        else:
            written += [folder / f"clues.{name}", folder / f"attention.{name}"]
            explanation.draw_clues(written[-2])
            explanation.draw_attention(written[-1])
    return written


def save_counterfactual(
    compared: Counterfactual, folder: str | Path, formats: Sequence[Format] = FORMATS
) -> list[Path]:
    """
    Write a counterfactual to a directory: the explanation of the story as given, that of the changed one inside
    `changed`, and the comparison as `counterfactual.json` and `counterfactual.md`. Gives the files written.
    """
    folder = Path(folder)
    written = save_explanation(compared.original, folder, formats)
    written += save_explanation(compared.changed, folder / "changed", formats)
    texts = {"json": compared.to_json, "md": compared.to_markdown}
    for name in (name for name in texts if name in formats):
        written.append(folder / f"counterfactual.{name}")
        replace_file(written[-1], texts[name]())
    return written


def check_formats(formats: Sequence[Format]) -> None:
    """Refuse what can't be written, before anything is."""
    unknown = [name for name in formats if name not in FORMATS]
    if unknown or not formats:
        raise ValueError(f"`formats` must be some of {', '.join(FORMATS)}; got {list(formats)}.")
    if set(formats) - set(_TEXTS):
        plot_library("matplotlib")
