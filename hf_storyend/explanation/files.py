"""Explanations and counterfactuals as files, the interactive HTML page among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from ..files import atomic_write, remove_leftovers
from ..html_page import content_security_policy, script_safe_json
from .counterfactuals import Counterfactual
from .figures import import_matplotlib
from .options import FORMATS, Format, check_formats
from .result import Explanation

_ASSETS = Path(__file__).parent
# Names of texts, which are written atomically; leftovers of killed commands are deleted.
_WRITTEN = r"(?:explanation|counterfactual)\.\w+"
_TEXT_FORMATS: dict[str, Callable[[Explanation], str]] = {
    "json": Explanation.to_json,
    "md": Explanation.to_markdown,
    "html": Explanation.to_html,
}


def save_explanation(
    explanation: Explanation, directory: str | Path, formats: Sequence[Format] = FORMATS
) -> list[Path]:
    """
    Save an explanation: `explanation.json`, `explanation.md`, `explanation.html`, and the pictures `sources`, `clues`
    and `attention` as `.svg` and `.png`.

    Args:
        explanation: The explanation.
        directory: Directory to write to; made if need be.
        formats: Formats to write; pictures need matplotlib.

    Returns:
        The files written.
    """
    check_writable(formats)
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    remove_leftovers(directory, _WRITTEN)
    written = []
    for name in dict.fromkeys(formats):
        if name in _TEXT_FORMATS:
            written.append(directory / f"explanation.{name}")
            atomic_write(written[-1], _TEXT_FORMATS[name](explanation))
        else:
            written += [directory / f"{picture}.{name}" for picture in ("sources", "clues", "attention")]
            explanation.draw_sources(written[-3])
            explanation.draw_clues(written[-2])
            explanation.draw_attention(written[-1])
    return written


def save_counterfactual(
    compared: Counterfactual, directory: str | Path, formats: Sequence[Format] = FORMATS
) -> list[Path]:
    """
    Save a counterfactual: the explanation of the story as given, that of the changed story in `changed`, and the
    comparison as `counterfactual.json` and `counterfactual.md`.

    Args:
        compared: The counterfactual.
        directory: Directory to write to; made if need be.
        formats: Formats to write; pictures need matplotlib.

    Returns:
        The files written.
    """
    directory = Path(directory)
    written = save_explanation(compared.original, directory, formats)
    written += save_explanation(compared.changed, directory / "changed", formats)
    texts = {"json": compared.to_json, "md": compared.to_markdown}
    for name in (name for name in texts if name in formats):
        written.append(directory / f"counterfactual.{name}")
        atomic_write(written[-1], texts[name]())
    return written


def check_writable(formats: Sequence[Format]) -> None:
    """Refuse formats that don't exist, and pictures if matplotlib is not installed."""
    check_formats(formats)
    if set(formats) - set(_TEXT_FORMATS):
        import_matplotlib("matplotlib")


def explanation_html(explanation: Explanation) -> str:
    """Return an explanation as one interactive page that needs no network."""
    style, script = _asset("page.css"), _asset("page.js")
    return Template(_asset("page.html")).substitute(
        policy=content_security_policy(style, script),
        style=style,
        script=script,
        title=escape(explanation.ending),
        data=script_safe_json(_page_data(explanation)),
    )


def _page_data(explanation: Explanation) -> dict[str, Any]:
    """Return the content without the attention of each word, which the page computes from matrices and graphs."""
    content = explanation.to_dict()
    content["words"] = [{name: word[name] for name in ("word", "probability", "sources")} for word in content["words"]]
    return content


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")
