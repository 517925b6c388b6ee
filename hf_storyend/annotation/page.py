"""The page that a person scores endings on: one HTML file that needs no network and sends nothing anywhere."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from string import Template
from typing import Any

from markdown_it import MarkdownIt

from ..self_contained_page import content_policy, harmless_json
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
        policy=content_policy(style, script),
        style=style,
        script=script,
        guidelines=MarkdownIt("commonmark").enable("table").render(guidelines()),
        data=harmless_json(_page_data(sample)),
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


def _part(name: str) -> str:
    return (_PARTS / name).read_text(encoding="utf-8")
