"""Explanations from options, in Python and by `storyend explain`."""

from __future__ import annotations

import json
import sys

import pytest

from hf_storyend.cli.main import main
from hf_storyend.explanation import ExplainOptions, explain, explain_with_options


@pytest.fixture
def saved(make_system, tokenizer, tmp_path, monkeypatch, wide_terminal):
    """A model in the directory `model` of the working directory."""
    model = make_system("ie-msa-ga")
    model.generation_config.max_new_tokens = 6
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", sys.argv)
    return model


def storyend(*arguments: str, code: int = 0) -> None:
    """Run the command in this process, which has loaded torch already."""
    sys.argv = ["storyend", *arguments]
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == code


def test_options_choose_model_story_and_files(saved, tokenizer, story, tmp_path):
    options = ExplainOptions(" ".join(story), model="model", output_dir="why", formats=("json", "md"), num_beams=2)
    explanation = explain_with_options(options)
    assert explanation == explain(saved, tokenizer, story, num_beams=2)
    assert {path.name for path in (tmp_path / "why").iterdir()} == {"explanation.json", "explanation.md"}


def test_the_command_prints_a_table_and_writes_files(saved, tokenizer, story, tmp_path, capsys):
    storyend("explain", " ".join(story), "--model", "model", "--output_dir", "why", "--num_beams", "2")
    explanation = explain(saved, tokenizer, story, num_beams=2)
    printed = capsys.readouterr().out
    assert explanation.ending in printed and "attention to triples" in printed
    suffixes = sorted(path.suffix for path in (tmp_path / "why").iterdir())
    assert suffixes == [".html", ".json", ".md", *[".png"] * 3, *[".svg"] * 3]
    assert json.loads((tmp_path / "why/explanation.json").read_text())["ending"] == explanation.ending


def test_the_command_prints_json(saved, tokenizer, story, capsys):
    storyend("explain", " ".join(story), "--model", "model", "--json")
    assert json.loads(capsys.readouterr().out)["ending"] == explain(saved, tokenizer, story).ending


def test_the_command_compares(saved, story, tmp_path, capsys):
    changes = ["--triple", "oven, Causes, smoke", "--without_triple", "cake,ReceivesAction,burn"]
    changes += ["--without_sentence", "2"]
    storyend("explain", " ".join(story), "--model", "model", *changes, "--output_dir", "why", "--format", "md")
    printed = capsys.readouterr().out
    assert "without sentence 2" in printed and "with the triple (oven, Causes, smoke)" in printed
    assert {path.name for path in (tmp_path / "why").iterdir()} == {"explanation.md", "counterfactual.md", "changed"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--triple", "oven"], "must be `head,Relation,tail`"),
        (["--without_sentence", "9"], "must be a number from 1 to 4"),
        (["--format", "png"], "no `--output_dir`"),
    ],
)
def test_the_command_says_what_is_wrong(saved, story, arguments, message, capsys):
    storyend("explain", " ".join(story), "--model", "model", *arguments, code=2)
    assert message in capsys.readouterr().err
