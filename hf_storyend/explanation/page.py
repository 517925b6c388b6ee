"""The explanation as a page to look around in: one HTML file that needs no network."""

from __future__ import annotations

from html import escape
from pathlib import Path
from string import Template
from typing import Any

from ..self_contained_page import content_policy, harmless_json
from .result import Explanation

_PARTS = Path(__file__).parent


def render_page(explanation: Explanation) -> str:
    """The whole page."""
    style, script = _part("page.css"), _part("page.js")
    return Template(_part("page.html")).substitute(
        policy=content_policy(style, script),
        style=style,
        script=script,
        title=escape(explanation.ending),
        data=harmless_json(_page_data(explanation)),
    )


def _page_data(explanation: Explanation) -> dict[str, Any]:
    """Without the lists for each word of the ending, which the page makes from matrices and graphs."""
    content = explanation.to_dict()
    content["words"] = [{name: word[name] for name in ("word", "probability", "copied")} for word in content["words"]]
    return content


def _part(name: str) -> str:
    return (_PARTS / name).read_text(encoding="utf-8")
