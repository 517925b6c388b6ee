"""Cards as pages: what is in them is text, whoever wrote it."""

from __future__ import annotations

import pytest

pytest.importorskip("gradio", reason="gradio is not installed")

from hf_storyend import default_model  # noqa: E402
from hf_storyend.demo.documents import card_html  # noqa: E402


def test_the_card_of_the_packages_model():
    html = card_html(default_model())
    assert "<h1>Story endings" in html and "<table>" in html and "model-index" not in html


def test_markup_in_a_card_is_shown(tmp_path):
    text = "---\nlicense: mit\n---\n<script>alert(1)</script> <img src=x onerror=alert(1)> [a](javascript:alert(1))\n"
    (tmp_path / "README.md").write_text(text)
    html = card_html(str(tmp_path))
    assert "<script" not in html and "<img" not in html and 'href="javascript' not in html and "license" not in html


def test_a_model_of_the_hub_has_its_card_there_and_a_directory_may_have_none(tmp_path):
    assert 'href="https://huggingface.co/me/it"' in card_html("me/it")
    assert "no card" in card_html(str(tmp_path))
