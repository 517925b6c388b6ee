"""An explanation as files: what pictures and the page hold, and what the command writes."""

from __future__ import annotations

import json
import re
import sys
import xml.etree.ElementTree as ElementTree

import pytest
from hf_storyend.cli.main import main

from hf_storyend.explanation import FORMATS, counterfactual, explain, save_counterfactual, save_explanation
from hf_storyend.explanation import figures as drawing

GENERATION = {"max_new_tokens": 6}
ALL_FILES = {
    *("explanation.json", "explanation.md", "explanation.html"),
    *("clues.svg", "clues.png", "attention.svg", "attention.png"),
}


def texts_of(path):
    """The words of an SVG picture."""
    root = ElementTree.parse(path).getroot()
    return ["".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.parametrize("system", ["seq2seq", "ie-msa-ga-copy"])
def test_all_files_are_written(system, make_system, tokenizer, story, tmp_path):
    explanation = explain(make_system(system), tokenizer, story, **GENERATION)
    written = save_explanation(explanation, tmp_path / "new" / "why")
    assert {path.name for path in written} == ALL_FILES == {path.name for path in (tmp_path / "new/why").iterdir()}
    assert all(path.read_bytes()[:4] == b"\x89PNG" for path in written if path.suffix == ".png")
    assert json.loads((tmp_path / "new/why/explanation.json").read_text()) == explanation.to_dict()


def test_the_attention_picture_has_a_matrix_a_kind_and_pair(make_system, tokenizer, story, tmp_path):
    explanation = explain(make_system("ie-msa-ga"), tokenizer, story, **GENERATION)
    explanation.draw_attention(tmp_path / "attention.svg")
    texts = texts_of(tmp_path / "attention.svg")
    assert {"state attention", "knowledge attention"} <= set(texts)
    # Each word of sentence 2 stands beside what reads it and below what it reads, in both kinds.
    assert texts.count("watched") == 4 and texts.count("put") == 2
    assert len(re.findall("<image ", (tmp_path / "attention.svg").read_text())) == 8 + 2


def test_long_words_are_cut_beside_a_matrix(make_system, tokenizer, tmp_path):
    explanation = explain(make_system("ie"), tokenizer, ["Incomprehensibilities $$."], **GENERATION)
    explanation.draw_attention(tmp_path / "attention.svg")
    texts = texts_of(tmp_path / "attention.svg")
    assert "Incomprehensi…" in texts and texts.count("$") == 2


def test_the_clue_picture_has_all_words_and_an_arrow_a_link(make_system, tokenizer, story, tmp_path):
    story[0] = (
        "Anna put $5 and $6 in the oven, and a long film and a long cake and a long long long window in the oven."
    )
    explanation = explain(make_system("ie-msa-ga"), tokenizer, story, **GENERATION)
    explanation.draw_clues(tmp_path / "clues.svg")
    texts = texts_of(tmp_path / "clues.svg")
    for number in range(1, 6):
        for word in explanation.words_of(number):
            assert word in texts
    assert explanation.links


def test_the_same_explanation_is_the_same_picture(make_system, tokenizer, story, tmp_path):
    explanation = explain(make_system("ie-msa-ga"), tokenizer, story, **GENERATION)
    for name in ("one.svg", "two.svg"):
        explanation.draw_clues(tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def test_the_page_loads_nothing_and_holds_the_story_as_data_only(make_system, tokenizer):
    hostile = 'Anna saw </script><script>alert("x")</script> & <img src=x>.'
    page = explain(make_system("ie-msa-ga"), tokenizer, [hostile], **GENERATION).to_html()
    assert page.count("<script") == 2 and "<img" not in page
    assert "default-src 'none'" in page
    assert not re.search(r"https?://", page)


def test_a_counterfactual_is_two_explanations_and_a_comparison(make_system, tokenizer, story, tmp_path):
    compared = counterfactual(make_system("ie-msa-ga"), tokenizer, story, without_sentence=2, **GENERATION)
    save_counterfactual(compared, tmp_path, formats=("json", "md"))
    names = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    pair = {"explanation.json", "explanation.md"}
    assert names == {*pair, *(f"changed/{name}" for name in pair), "counterfactual.json", "counterfactual.md"}


def test_unknown_formats_are_refused_before_anything_is_written(make_system, tokenizer, story, tmp_path):
    explanation = explain(make_system("ie"), tokenizer, story, **GENERATION)
    with pytest.raises(ValueError, match="some of json, md, html, svg, png; got \\['json', 'gif'\\]"):
        save_explanation(explanation, tmp_path / "why", formats=("json", "gif"))
    assert not (tmp_path / "why").exists()


def test_without_matplotlib_all_but_pictures_can_be_written(make_system, tokenizer, story, tmp_path, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(drawing.importlib, "import_module", missing)
    explanation = explain(make_system("ie"), tokenizer, story, **GENERATION)
    save_explanation(explanation, tmp_path / "texts", formats=("json", "md", "html"))
    with pytest.raises(ImportError, match=r"hf_storyend\[plots\]"):
        save_explanation(explanation, tmp_path / "why", FORMATS)
    assert not (tmp_path / "why").exists()


@pytest.fixture
def saved(make_system, tokenizer, tmp_path, monkeypatch):
    """A model in a directory, and a wide terminal."""
    model = make_system("ie-msa-ga")
    model.generation_config.max_new_tokens = 6
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rich.console.Console._environ", {"COLUMNS": "240"})
    monkeypatch.setattr(sys, "argv", sys.argv)
    return model


def storyend(*arguments: str, code: int = 0) -> None:
    """The command in this process, which has loaded torch already."""
    sys.argv = ["storyend", *arguments]
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == code


def test_the_command_prints_a_table_and_writes_files(saved, tokenizer, story, tmp_path, capsys):
    storyend("explain", "model", " ".join(story), "--output", "why", "--num-beams", "2")
    explanation = explain(saved, tokenizer, story, num_beams=2)
    printed = capsys.readouterr().out
    assert explanation.ending in printed and "triples read" in printed
    assert {path.name for path in (tmp_path / "why").iterdir()} == ALL_FILES
    assert json.loads((tmp_path / "why/explanation.json").read_text())["ending"] == explanation.ending


def test_the_command_prints_json(saved, tokenizer, story, capsys):
    storyend("explain", "model", " ".join(story), "--json")
    assert json.loads(capsys.readouterr().out)["ending"] == explain(saved, tokenizer, story).ending


def test_the_command_compares(saved, tokenizer, story, tmp_path, capsys):
    changes = ["--triple", "oven, Causes, smoke", "--without-triple", "cake,ReceivesAction,burn"]
    storyend(
        "explain", "model", " ".join(story), *changes, "--without-sentence", "2", "--output", "why", "--format", "md"
    )
    printed = capsys.readouterr().out
    assert "without sentence 2" in printed and "with the triple (oven, Causes, smoke)" in printed
    assert {path.name for path in (tmp_path / "why").iterdir()} == {"explanation.md", "counterfactual.md", "changed"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--triple", "oven"], "`--triple` must be `head,Relation,tail`"),
        (["--without-sentence", "9"], "must be a number from 1 to 4"),
        (["--format", "png"], "give `--output`"),
    ],
)
def test_the_command_says_what_is_wrong(saved, story, arguments, message, capsys):
    storyend("explain", "model", " ".join(story), *arguments, code=2)
    assert message in capsys.readouterr().err
