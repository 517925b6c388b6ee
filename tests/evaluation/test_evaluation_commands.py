"""`storyend evaluate`, `storyend score` and the example, as a person starts them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import datasets
import pytest
from storyend_cli.main import main

from hf_storyend.data.stories import embedded_stories
from hf_storyend.preparation import PreparationOptions, prepare

EXAMPLE = Path(__file__).parents[2] / "examples" / "evaluate.py"
NOT_RESULTS = {"stories_per_second"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A prepared directory with a model that has learnt nothing, and nine stories in a file."""
    folder = tmp_path_factory.mktemp("evaluation")
    prepare(PreparationOptions(hidden_size=8, num_layers=1, embedding_size=6), folder / "prepared")
    rows = [json.dumps(story) + "\n" for story in embedded_stories()[:9]]
    (folder / "nine.jsonl").write_text("".join(rows))
    return folder


def storyend(*arguments: str, code: int = 0) -> None:
    """The command in this process, which has loaded torch already."""
    sys.argv = ["storyend", *arguments]
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == code


@pytest.fixture(autouse=True)
def at_home(folder, monkeypatch, wide_terminal):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", folder / "cache")


def test_evaluate_and_score_give_the_same_numbers(folder, capsys):
    arguments = ["--data", "prepared", "--max-stories", "6", "--confidence", "20"]
    storyend("evaluate", "prepared", *arguments, "--max-new-tokens", "6", "--output", "results")
    written = "results/endings.jsonl"
    capsys.readouterr()
    storyend(
        *("score", "--endings", written, "--name", "ours", "--model", "prepared", "--baseline", written),
        *(*arguments, "--json"),
    )
    scored = json.loads(capsys.readouterr().out)["ours"]
    evaluated = json.loads((folder / "results" / "evaluation.json").read_text())
    assert scored["metrics"].items() <= evaluated["metrics"].items()
    assert {"perplexity", "sampled_perplexity", "knowledge_use"} <= evaluated["metrics"].keys()
    assert scored["trivial_baselines"] == evaluated["trivial_baselines"] and evaluated["num_stories"] == 6
    assert {row["p_value"] for row in scored["significance"].values()} == {1.0}


def test_cloze_questions_are_answered_too(folder, capsys):
    header = [*(f"InputSentence{n}" for n in range(1, 5)), "RandomFifthSentenceQuiz1", "RandomFifthSentenceQuiz2"]
    row = [
        "It rained.",
        "We ran.",
        "We fell.",
        "We laughed.",
        "We were wet.",
        "The moon sang loudly to the big shoes.",
    ]
    lines = [",".join(["InputStoryid", *header, "AnswerRightEnding"]), ",".join(["1", *row, "1"])]
    (folder / "cloze.csv").write_text("\n".join(lines) + "\n")
    arguments = ["--data", "nine.jsonl", "--max-stories", "2", "--confidence", "0", "--num-seeds", "0", "--json"]
    storyend("evaluate", "prepared", *arguments, "--cloze", "cloze.csv")
    metrics = json.loads(capsys.readouterr().out)["metrics"]
    assert metrics["cloze_accuracy"] == 100 and "cloze_accuracy_normalised" in metrics
    assert "sampled_perplexity" not in metrics


def test_tables_are_printed(folder, capsys):
    (folder / "endings.txt").write_text("The end .\n" * 9)
    storyend("score", "--endings", "endings.txt", "--data", "nine.jsonl", "--confidence", "0", "--output", "tables")
    shown = capsys.readouterr().out
    assert "BLEU-1" in shown and "one constant ending" in shown and "tok:13a" in shown
    assert (folder / "tables" / "endings" / "evaluation.md").is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--endings", "eight.txt", "--data", "nine.jsonl"), "8 endings for 9 stories"),
        (("--endings", "eight.txt", "--data", "prepared", "--split", "exam"), "no split `exam`"),
        (("--endings", "eight.txt", "--endings", "eight.txt", "--data", "nine.jsonl"), "2 different names"),
        (("--endings", "none.txt", "--data", "nine.jsonl"), "none.txt can't be opened"),
    ],
)
def test_mistakes_are_one_line(folder, capsys, arguments, message):
    (folder / "eight.txt").write_text("The end .\n" * 8)
    storyend("score", *arguments, code=2)
    shown = capsys.readouterr().err
    assert message in shown and len(shown.strip().splitlines()) == 1


def launched(folder: Path, *command: str) -> str:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}
    environment["HF_DATASETS_CACHE"] = str(folder / "cache")
    result = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_two_processes_find_what_one_finds(folder):
    """Nine stories in batches of four: in the last one both processes get the same story."""
    arguments = [str(EXAMPLE), "--model", "prepared", "--data_dir", "nine.jsonl", "--batch_size", "4", "--output_dir"]
    launched(folder, sys.executable, *arguments, "one")
    processes = ["--standalone", "--nproc_per_node", "2"]
    shown = launched(folder, sys.executable, "-m", "torch.distributed.run", *processes, *arguments, "two")
    assert shown.count("| BLEU-1 |") == 1, "only one process prints"
    one, two = (json.loads((folder / name / "evaluation.json").read_text()) for name in ("one", "two"))
    assert two["num_stories"] == 9
    assert one["trivial_baselines"] == two["trivial_baselines"]
    for name, value in one["metrics"].items():
        assert name in NOT_RESULTS or two["metrics"][name] == pytest.approx(value, rel=1e-6), name
    endings = [
        [(row["row"], row["ending"]) for row in map(json.loads, (folder / name / "endings.jsonl").open())]
        for name in ("one", "two")
    ]
    assert endings[0] == endings[1]
