"""The page that a person scores endings on: one HTML file that needs no network and sends nothing anywhere."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from string import Template
from typing import Any

from markdown_it import MarkdownIt

from .rubric import ERROR_TYPES, METRICS
from .sampling import Sample

_PARTS = Path(__file__).parent


def guidelines() -> str:
    """What annotators are told, as Markdown."""
    return _part("guidelines.md")


def render_page(sample: Sample) -> str:
    """The whole page for a sample; it names no system."""
    style, script = _part("page.css"), _part("page.js")
    return Template(_part("page.html")).substitute(
        policy=_policy(style, script),
        style=style,
        script=script,
        guidelines=MarkdownIt("commonmark").enable("table").render(guidelines()),
        data=_harmless_json(_page_data(sample)),
    )


def _page_data(sample: Sample) -> dict[str, Any]:
    return {
        "sample": sample.id,
        "metrics": [asdict(metric) for metric in METRICS],
        "errors": [asdict(error_type) for error_type in ERROR_TYPES],
        "stories": [story.context for story in sample.stories],
        "items": [{"id": item.id, "story": item.story, "ending": item.ending} for item in sample.items],
        "orders": [sample.order(annotator) for annotator in range(1, sample.num_annotators + 1)],
    }


def _harmless_json(content: Any) -> str:
    """JSON without the characters that could end the element it stands in, or start another."""
    text = json.dumps(content)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _policy(style: str, script: str) -> str:
    """Only this page's own script and style may run, whatever the stories hold; nothing is ever loaded."""
    return f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; base-uri 'none'"


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _part(name: str) -> str:
    return (_PARTS / name).read_text(encoding="utf-8")
