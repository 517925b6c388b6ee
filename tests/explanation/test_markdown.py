"""Markdown pages: text is literal, and columns are those that the system has."""

from __future__ import annotations

import re

from hf_storyend.explanation import explain


def test_text_is_printed_literally(explain_story):
    page = explain_story("ie", ["Anna saw | and *stars* <b>."]).to_markdown()
    assert r"Anna saw \| and \*stars\* \<b\>." in page
    table = [line for line in page.splitlines() if line.startswith("|")]
    assert {line.replace(r"\|", "").count("|") for line in table} == {4}


def test_a_model_without_knowledge_has_no_column_for_it(explain_story):
    page = explain_story("ie").to_markdown()
    assert "triples" not in page.split("## Notes")[0] and "came from\n" not in page
    assert "attention to triples" in explain_story("ie-msa-ga").to_markdown()
    assert "attention to triples" not in explain_story("ie-copy-tails").to_markdown()


def test_sources_and_effects_have_tables(make_system, tokenizer, story):
    model, triple = make_system("ie-copy-tails"), ("film", "Causes", "burn")
    tokenizer.knowledge.user_weight = 30.0
    explanation = explain(model, tokenizer, story, triples=[triple], max_new_tokens=1)
    page = explanation.to_markdown()
    assert "| word | probability | vocabulary | story | triples |" in page
    assert re.search(r"\| burn \| [01]\.\d+ \| \d+ % \| - \| \d+ % film Causes burn \|", page)
    assert re.search(r"\| film Causes burn \| [\d,e+]+ times less likely \| \+\d", page)
    assert re.search(r"\| all triples \| [\d,e+]+ times less likely \|", page)
    assert all(f"| sentence {number} | " in page for number in (1, 2, 3, 4))


def test_top_k_is_the_number_of_weights_in_a_cell(explain_story):
    explanation = explain_story("ie")
    for top_k in (1, 2):
        table = explanation.to_markdown(top_k).split("## Attention of each word")[1]
        rows = [line for line in table.splitlines() if line.startswith("|")][2:]
        assert {row.split(" | ")[2].count(",") + 1 for row in rows} <= set(range(1, top_k + 1))
