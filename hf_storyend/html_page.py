"""Safe embedding of untrusted text in self-contained HTML pages."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any


def script_safe_json(content: Any) -> str:
    """Return JSON for a `<script>` element: nothing in it can close the element or open another."""
    text = json.dumps(content)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def content_security_policy(style: str, script: str) -> str:
    """
    Return a Content-Security-Policy that allows only the page's own style and script and loads nothing.

    Args:
        style, script: Content of the page's `<style>` and `<script>` elements, allowed by their hash.
    """
    return f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; base-uri 'none'"


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
