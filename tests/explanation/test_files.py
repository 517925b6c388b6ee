"""Explanations as files, and the HTML page as text."""

from __future__ import annotations

import json
import re

import pytest

from hf_storyend.explanation import counterfactual, figures, save_counterfactual, save_explanation
from hf_storyend.explanation.options import FORMATS

ALL_FILES = {
    *("explanation.json", "explanation.md", "explanation.html"),
    *(f"{picture}.{suffix}" for picture in ("sources", "clues", "attention") for suffix in ("svg", "png")),
}


@pytest.mark.parametrize("system", ["seq2seq", "ie-msa-ga-copy", "ie-copy-tails"])
def test_all_files_are_written(system, explain_story, tmp_path):
    explanation = explain_story(system)
    written = save_explanation(explanation, tmp_path / "new" / "why")
    assert {path.name for path in written} == ALL_FILES == {path.name for path in (tmp_path / "new/why").iterdir()}
    assert all(path.read_bytes()[:4] == b"\x89PNG" for path in written if path.suffix == ".png")
    assert json.loads((tmp_path / "new/why/explanation.json").read_text()) == explanation.to_dict()


def test_a_counterfactual_is_two_explanations_and_a_comparison(make_system, tokenizer, story, tmp_path):
    compared = counterfactual(make_system("ie-msa-ga"), tokenizer, story, without_sentence=2, max_new_tokens=6)
    save_counterfactual(compared, tmp_path, formats=("json", "md"))
    names = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    pair = {"explanation.json", "explanation.md"}
    assert names == {*pair, *(f"changed/{name}" for name in pair), "counterfactual.json", "counterfactual.md"}


def test_unknown_formats_are_refused_before_anything_is_written(explain_story, tmp_path):
    with pytest.raises(ValueError, match="some of json, md, html, svg, png; got \\['json', 'gif'\\]"):
        save_explanation(explain_story("ie"), tmp_path / "why", formats=("json", "gif"))
    assert not (tmp_path / "why").exists()


def test_without_matplotlib_all_but_pictures_can_be_written(explain_story, tmp_path, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(figures.importlib, "import_module", missing)
    explanation = explain_story("ie")
    (tmp_path / "texts").mkdir()
    killed = tmp_path / "texts" / ".explanation.json.0a1b2c3d.partial"
    killed.write_text("{")
    save_explanation(explanation, tmp_path / "texts", formats=("json", "md", "html"))
    assert not killed.exists(), "What a killed command left behind is deleted."
    with pytest.raises(ImportError, match=r"hf_storyend\[plots\]"):
        save_explanation(explanation, tmp_path / "why", FORMATS)
    assert not (tmp_path / "why").exists()


def test_the_page_loads_nothing_and_has_the_story_as_data_only(explain_story):
    markup = 'Anna saw </script><script>alert("x")</script> & <img src=x>.'
    page = explain_story("ie-msa-ga", [markup]).to_html()
    assert page.count("<script") == 2 and "<img" not in page
    assert "default-src 'none'" in page
    assert not re.search(r"https?://", page)
