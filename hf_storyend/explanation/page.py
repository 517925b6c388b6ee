"""The explanation as a page to look around in: one HTML file that needs no network."""

from __future__ import annotations

import base64
import hashlib
import json
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from .result import Explanation

_PARTS = Path(__file__).parent


def render_page(explanation: Explanation) -> str:
    """The whole page."""
    style, script = _part("page.css"), _part("page.js")
    return Template(_part("page.html")).substitute(
        policy=_policy(style, script),
        style=style,
        script=script,
        title=escape(explanation.ending),
        data=_harmless_json(_page_data(explanation)),
    )


def _page_data(explanation: Explanation) -> dict[str, Any]:
    """Without the lists for each word of the ending, which the page makes from matrices and graphs."""
    content = explanation.to_dict()
    content["words"] = [{name: word[name] for name in ("word", "probability", "copied")} for word in content["words"]]
    return content


def _harmless_json(content: Any) -> str:
    """JSON without the characters that could end the element it stands in, or start another."""
    text = json.dumps(content)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _policy(style: str, script: str) -> str:
    """Only this page's own script and style may run, whatever the story holds; nothing is ever loaded."""
    return f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; base-uri 'none'"


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _part(name: str) -> str:
    return (_PARTS / name).read_text(encoding="utf-8")
