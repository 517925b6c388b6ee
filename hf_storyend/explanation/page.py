"""Explanations as files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any, get_args

from ..files import atomic_write
from ..html_page import content_security_policy, script_safe_json
from .counterfactual import Counterfactual
from .figures import plot_library
from .result import Explanation, Format

_PARTS = Path(__file__).parent


def render_page(explanation: Explanation) -> str:
    """The whole page."""
    style, script = _part("page.css"), _part("page.js")
    return Template(_part("page.html")).substitute(
        policy=content_security_policy(style, script),
        style=style,
        script=script,
        title=escape(explanation.ending),
        data=script_safe_json(_page_data(explanation)),
    )


def _page_data(explanation: Explanation) -> dict[str, Any]:
    """Without the lists for each word of the ending, which the page makes from matrices and graphs."""
    content = explanation.to_dict()
    content["words"] = [{name: word[name] for name in ("word", "probability", "copied")} for word in content["words"]]
    return content


def _part(name: str) -> str:
    return (_PARTS / name).read_text(encoding="utf-8")


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
            atomic_write(written[-1], _TEXTS[name](explanation))
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
        atomic_write(written[-1], texts[name]())
    return written


def check_formats(formats: Sequence[Format]) -> None:
    """Refuse what can't be written, before anything is."""
    unknown = [name for name in formats if name not in FORMATS]
    if unknown or not formats:
        raise ValueError(f"`formats` must be some of {', '.join(FORMATS)}; got {list(formats)}.")
    if set(formats) - set(_TEXTS):
        plot_library("matplotlib")
