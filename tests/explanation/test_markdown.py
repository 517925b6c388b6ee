"""Markdown pages: text is literal, and columns are those that the system has."""

from __future__ import annotations


def test_text_is_printed_literally(explain_story):
    page = explain_story("ie", ["Anna saw | and *stars* <b>."]).to_markdown()
    assert r"Anna saw \| and \*stars\* \<b\>." in page
    table = [line for line in page.splitlines() if line.startswith("|")]
    assert {line.replace(r"\|", "").count("|") for line in table} == {4}


def test_a_model_without_knowledge_has_no_column_for_it(explain_story):
    page = explain_story("ie").to_markdown()
    assert "triples" not in page.split("## Notes")[0]
    assert "attention to triples" in explain_story("ie-msa-ga").to_markdown()


def test_top_k_is_the_number_of_weights_in_a_cell(explain_story):
    explanation = explain_story("ie")
    for top_k in (1, 2):
        rows = [line for line in explanation.to_markdown(top_k).splitlines() if line.startswith("|")][2:]
        assert {row.split(" | ")[2].count(",") + 1 for row in rows} <= set(range(1, top_k + 1))
