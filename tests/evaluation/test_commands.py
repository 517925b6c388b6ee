"""`storyend evaluate` and `storyend score`, as typed."""

import json
import sys
from pathlib import Path

import pytest

from hf_storyend.cli.main import main
from hf_storyend.data import embedded_stories


@pytest.fixture
def storyend(tmp_path, monkeypatch, capsys, wide_terminal):
    """Run a command on nine stories; its exit code, output and errors."""
    rows = [json.dumps(story) + "\n" for story in embedded_stories()[:9]]
    (tmp_path / "nine.jsonl").write_text("".join(rows))
    (tmp_path / "endings.txt").write_text("The end .\n" * 9)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["storyend", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return ended.value.code or 0, printed.out, printed.err

    return run


def test_score_prints_a_table_or_json(storyend):
    arguments = ["score", "--endings", "endings.txt", "--data_dir", "nine.jsonl", "--bootstrap_samples", "0"]
    code, table, _ = storyend(*arguments, "--output_dir", "tables")
    assert code == 0
    assert "BLEU-1" in table and "one constant ending" in table and "tok:13a" in table
    assert Path("tables/endings/evaluation.md").is_file()
    code, printed, _ = storyend(*arguments, "--name", "ours", "--json")
    assert json.loads(printed)["ours"]["num_stories"] == 9


def test_evaluate_prints_a_table_or_json(storyend):
    arguments = ["evaluate", "--data_dir", "nine.jsonl", "--max_stories", "2", "--num_seeds", "0", "--num_beams", "1"]
    code, table, _ = storyend(*arguments, "--bootstrap_samples", "0", "--name", "ours")
    assert code == 0 and "| 2 stories | ours |" in table
    code, printed, _ = storyend(*arguments, "--bootstrap_samples", "0", "--json")
    assert json.loads(printed)["num_stories"] == 2


def test_evaluate_prints_ablations(storyend):
    settings = ["--data_dir", "nine.jsonl", "--max_stories", "2", "--num_seeds", "0", "--max_new_tokens", "2"]
    code, table, _ = storyend("evaluate", *settings, "--num_beams", "1", "--bootstrap_samples", "0", "--ablations")
    assert code == 0 and "| ablation, 2 stories | perplexity | change |" in table
    for row in ("as it is", "no triples", "random tails", "uniform state attention", "without sentence 4"):
        assert f"| {row} | " in table
    assert "stories with rare words: not measured" in table


def test_mistakes_are_one_line(storyend):
    Path("eight.txt").write_text("The end .\n" * 8)
    code, _, errors = storyend("score", "--endings", "eight.txt", "--data_dir", "nine.jsonl")
    assert code == 2
    assert "8 endings for 9 stories" in errors and len(errors.strip().splitlines()) == 1
