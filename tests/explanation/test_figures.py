"""Pictures: what they show, read from the SVG file."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from hf_storyend.explanation import explain  # noqa: E402


def texts_of(path):
    root = ElementTree.parse(path).getroot()
    return ["".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")]


def test_the_attention_picture_has_a_matrix_for_each_kind_and_pair(explain_story, tmp_path):
    explain_story("ie-msa-ga").draw_attention(tmp_path / "attention.svg")
    texts = texts_of(tmp_path / "attention.svg")
    assert {"state attention", "knowledge attention"} <= set(texts)
    # Each word of sentence 2 is a query of one matrix and a key of another, in both kinds.
    assert texts.count("watched") == 4 and texts.count("put") == 2
    assert len(re.findall("<image ", (tmp_path / "attention.svg").read_text())) == 8 + 2


def test_long_words_are_cut_beside_a_matrix(explain_story, tmp_path):
    explain_story("ie", ["Incomprehensibilities $$."]).draw_attention(tmp_path / "attention.svg")
    texts = texts_of(tmp_path / "attention.svg")
    assert "Incomprehensi…" in texts and texts.count("$") == 2


def test_the_clue_picture_has_all_words(explain_story, story, tmp_path):
    story[0] = (
        "Anna put $5 and $6 in the oven, and a long film and a long cake and a long long long window in the oven."
    )
    explanation = explain_story("ie-msa-ga", story)
    explanation.draw_clues(tmp_path / "clues.svg")
    texts = texts_of(tmp_path / "clues.svg")
    for number in range(1, 6):
        for word in explanation.words_of(number):
            assert word in texts
    assert explanation.links


def test_the_same_explanation_is_the_same_file(explain_story, tmp_path):
    explanation = explain_story("ie-msa-ga")
    for name in ("one.svg", "two.svg"):
        explanation.draw_clues(tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def test_the_clue_picture_says_that_arrows_are_attention(explain_story, tmp_path):
    for system, legend in (("ie-msa-ga", "→ knowledge attention"), ("ie-copy-tails", "words with triples are blue")):
        explain_story(system).draw_clues(tmp_path / "clues.svg")
        texts = texts_of(tmp_path / "clues.svg")
        assert any("not what a word came from" in text for text in texts)
        assert any(text.startswith(legend) for text in texts)


def test_the_picture_of_sources_has_a_bar_for_each_word(make_system, tokenizer, story, tmp_path):
    model, triple = make_system("ie-copy-tails"), ("film", "Causes", "burn")
    tokenizer.knowledge.user_weight = 30.0
    explanation = explain(model, tokenizer, story, triples=[triple], max_new_tokens=2)
    explanation.draw_sources(tmp_path / "sources.svg")
    texts = texts_of(tmp_path / "sources.svg")
    assert {"vocabulary", "story", "knowledge"} <= set(texts)
    assert {word.word for word in explanation.words} <= set(texts) and "film Causes burn" in texts
