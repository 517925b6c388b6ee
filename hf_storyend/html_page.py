"""What an HTML page needs that holds other people's text and must work without a network."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any


def harmless_json(content: Any) -> str:
    """JSON without the characters that could end the element it stands in, or start another."""
    text = json.dumps(content)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def content_policy(style: str, script: str) -> str:
    """Only the page's own script and style may run, whatever the text holds; nothing is ever loaded."""
    return f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; base-uri 'none'"


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
