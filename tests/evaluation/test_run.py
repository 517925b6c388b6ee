"""Whole evaluations: of a model in memory, of a saved model, of files of endings, and on two processes."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hf_storyend.data import PrepareOptions, embedded_stories, prepare
from hf_storyend.evaluation.gender_swap_result import GenderSwap
from hf_storyend.evaluation.notes import note_evaluation, read_notes, weights_digest
from hf_storyend.evaluation.options import EvaluateOptions, EvaluationOptions, ScoreOptions
from hf_storyend.evaluation.results import Evaluation
from hf_storyend.evaluation.run import evaluate, evaluate_model, score
from hf_storyend.pretrained import EXAMPLE_STORIES, default_model

EXAMPLE = Path(__file__).parents[2] / "examples" / "evaluate.py"
NO_SAMPLING = EvaluationOptions(batch_size=4, num_seeds=0)
NOT_RESULTS = {"stories_per_second"}


def test_endings_are_those_of_generate(model, tokenizer, stories, tokenised):
    options = EvaluationOptions(batch_size=3, generation={"num_beams": 2, "max_new_tokens": 5})
    result = evaluate_model(model, tokenizer, stories, tokenised, options=options)
    for record, story in zip(result.endings, stories, strict=True):
        inputs = tokenizer([story["context"]], return_tensors="pt")
        generated = model.generate(**inputs, num_beams=2, max_new_tokens=5)
        expected = tokenizer.batch_decode(generated, skip_special_tokens=True, context=[story["context"]])
        assert record["ending"] == expected[0] and record["reference"] == story["ending"]


def test_batches_do_not_change_the_result(model, tokenizer, stories, tokenised):
    first, second = (
        evaluate_model(model, tokenizer, stories, tokenised, options=EvaluationOptions(batch_size=size))
        for size in (2, 128)
    )
    assert [row["ending"] for row in first.endings] == [row["ending"] for row in second.endings]
    for name in set(first.metrics) - {"stories_per_second"}:
        assert first.metrics[name] == pytest.approx(second.metrics[name], rel=1e-5, abs=1e-5), name


def test_the_first_stories_only_and_no_endings(model, tokenizer, stories, tokenised):
    result = evaluate_model(
        model,
        tokenizer,
        stories,
        tokenised,
        options=EvaluationOptions(max_stories=4, predict_with_generate=False, bootstrap_samples=20),
    )
    assert result.num_stories == 4 and result.endings == [] and result.trivial_baselines == {}
    assert set(result.metrics) == {
        *("perplexity", "sampled_perplexity", "sampled_perplexity_std", "stories_per_second")
    }
    alone = evaluate_model(model, tokenizer, stories.select(range(4)), tokenised.select(range(4)), options=NO_SAMPLING)
    assert result.metrics["perplexity"] == pytest.approx(alone.metrics["perplexity"])
    low, high = result.intervals["perplexity"]
    assert low <= result.metrics["perplexity"] <= high


def test_errors(model, tokenizer, stories, tokenised):
    with pytest.raises(ValueError, match="`stories` has 11 rows, `tokenised` 10"):
        evaluate_model(model, tokenizer, stories, tokenised.select(range(10)))
    with pytest.raises(ValueError, match="`stories` is empty"):
        evaluate_model(model, tokenizer, stories.select([]), tokenised.select([]))
    with pytest.raises(ValueError, match="ask for one each"):
        generation = {"num_return_sequences": 2, "num_beams": 2}
        evaluate_model(model, tokenizer, stories, tokenised, options=EvaluationOptions(generation=generation))


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A prepared directory with an untrained model, and nine stories in a file."""
    folder = tmp_path_factory.mktemp("evaluation")
    prepare(PrepareOptions(str(folder / "prepared"), hidden_size=8, num_layers=1, embedding_size=6))
    rows = [json.dumps(story) + "\n" for story in embedded_stories()[:9]]
    (folder / "nine.jsonl").write_text("".join(rows))
    return folder


@pytest.fixture
def in_folder(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", folder / "cache")


@pytest.mark.usefixtures("in_folder")
def test_evaluate_and_score_give_the_same_metrics(folder):
    settings = {"data_dir": "prepared", "max_stories": 6, "bootstrap_samples": 20}
    shutil.copytree("prepared", "mine", ignore=shutil.ignore_patterns("report.json", "stories", "tokenised"))
    own = {"max_new_tokens": 6, "output_dir": "results", "gender_swap": True}
    evaluated = evaluate(EvaluateOptions(model="mine", **own, **settings))
    endings = "results/endings.jsonl"
    scored = score(ScoreOptions(endings=(endings,), names=("ours",), model="prepared", baseline=endings, **settings))
    assert list(scored) == ["ours"]
    assert scored["ours"].metrics.items() <= evaluated.metrics.items()
    assert {"perplexity", "sampled_perplexity", "knowledge_use"} <= evaluated.metrics.keys()
    assert scored["ours"].trivial_baselines == evaluated.trivial_baselines and evaluated.num_stories == 6
    assert {row["p_value"] for row in scored["ours"].significance.values()} == {1.0}
    assert json.loads((folder / "results" / "evaluation.json").read_text()) == json.loads(evaluated.to_json())
    # The model's directory notes it, for its card.
    (note,) = read_notes(folder / "mine")
    assert (note.dataset_id, note.split, note.num_stories) == ("hf_storyend-embedded", "test", 6)
    assert note.decoding == "8 beams, length_penalty 0.0, max_new_tokens 6" and note.metrics == evaluated.metrics
    assert list(note.examples) == list(EXAMPLE_STORIES) and note.weights == weights_digest(folder / "mine")
    assert GenderSwap.from_dict(note.gender_swap) == evaluated.gender_swap
    assert "change places" not in evaluated.to_markdown() and "once of her" in evaluated.to_markdown()


@pytest.mark.usefixtures("in_folder")
def test_nothing_is_noted_where_no_model_of_ones_own_is(folder):
    before = {path: set(Path(path).iterdir()) for path in ("prepared", default_model())}
    for model in ("prepared", default_model(), "me/on-the-hub"):
        settings = {"dataset_id": "a", "split": "test", "decoding": "preset paper", "examples": {}}
        note_evaluation(model, Evaluation({"bleu_1": 1.0}), **settings)
    assert before == {path: set(Path(path).iterdir()) for path in before}


@pytest.mark.usefixtures("in_folder")
def test_story_cloze_accuracy(folder):
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
    settings = {"max_stories": 2, "bootstrap_samples": 0, "num_seeds": 0}
    metrics = evaluate(EvaluateOptions("prepared", "nine.jsonl", cloze="cloze.csv", **settings)).metrics
    assert metrics["cloze_accuracy"] == 100 and "cloze_accuracy_normalised" in metrics
    assert "sampled_perplexity" not in metrics


@pytest.mark.usefixtures("in_folder")
def test_ablations_are_part_of_the_results(folder):
    settings = {"max_stories": 3, "bootstrap_samples": 0, "num_seeds": 0, "max_new_tokens": 3, "ablations": True}
    result = evaluate(EvaluateOptions("prepared", "prepared", output_dir="ablated", **settings))
    everything, rare = result.ablations.subsets
    assert everything.num_stories == 3 and everything.rows[0].perplexity == pytest.approx(result.metrics["perplexity"])
    assert result.metrics["perplexity_rare_words"] == rare.rows[0].perplexity
    saved = json.loads((folder / "ablated" / "evaluation.json").read_text())
    assert saved["ablations"] == result.ablations.to_dict()
    assert result.ablations.to_markdown() in (folder / "ablated" / "evaluation.md").read_text()
    assert "Perplexity, stories with rare words" in (folder / "ablated" / "model_index.yaml").read_text()
    alone = evaluate(EvaluateOptions("prepared", "nine.jsonl", **settings))
    assert len(alone.ablations.subsets) == 1 and "no training stories" in alone.ablations.notes[0]
    assert "perplexity_rare_words" not in alone.metrics


@pytest.mark.usefixtures("in_folder")
def test_scores_are_saved_for_each_system(folder):
    (folder / "constant.txt").write_text("The end .\n" * 9)
    score(ScoreOptions(endings=("constant.txt",), data_dir="nine.jsonl", bootstrap_samples=0, output_dir="tables"))
    table = (folder / "tables" / "constant" / "evaluation.md").read_text()
    assert "| 9 stories | constant | one constant ending |" in table


@pytest.mark.usefixtures("in_folder")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"endings": ("eight.txt",), "data_dir": "nine.jsonl"}, "8 endings for 9 stories"),
        ({"endings": ("eight.txt",), "data_dir": "prepared", "split": "exam"}, "no split `exam`"),
        ({"endings": ("eight.txt", "eight.txt"), "data_dir": "nine.jsonl"}, "2 different names"),
        ({"endings": ("eight.txt",), "data_dir": "nine.jsonl", "names": ("a/b",), "output_dir": "x"}, "directories"),
        ({"endings": ("none.txt",), "data_dir": "nine.jsonl"}, "none.txt can't be opened"),
        ({"endings": ("eight.txt",), "data_dir": "nine.jsonl", "model": "none"}, "`none` is no model"),
    ],
)
def test_mistakes_are_named(folder, options, message):
    (folder / "eight.txt").write_text("The end .\n" * 8)
    with pytest.raises((ValueError, OSError), match=message):
        score(ScoreOptions(**options))


def launch(folder: Path, *command: str) -> str:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}
    environment["HF_DATASETS_CACHE"] = str(folder / "cache")
    result = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.slow
def test_two_processes_give_the_result_of_one(folder):
    """Nine stories in batches of four: in the last one both processes get the same story."""
    arguments = [str(EXAMPLE), "--model", "prepared", "--data_dir", "nine.jsonl", "--batch_size", "4", "--ablations"]
    arguments.append("--output_dir")
    launch(folder, sys.executable, *arguments, "one")
    processes = ["--standalone", "--nproc_per_node", "2"]
    shown = launch(folder, sys.executable, "-m", "torch.distributed.run", *processes, *arguments, "two")
    assert shown.count("| BLEU-1 |") == 1, "only one process prints"
    one, two = (json.loads((folder / name / "evaluation.json").read_text()) for name in ("one", "two"))
    assert two["num_stories"] == 9
    assert one["trivial_baselines"] == two["trivial_baselines"]
    for name, value in one["metrics"].items():
        assert name in NOT_RESULTS or two["metrics"][name] == pytest.approx(value, rel=1e-6), name
    of_one, of_two = (
        {row["name"]: row["perplexity"] for row in result["ablations"]["subsets"][0]["rows"]} for result in (one, two)
    )
    assert of_one == pytest.approx(of_two, rel=1e-6) and len(of_one) > 5
    endings = [
        [(row["row"], row["ending"]) for row in map(json.loads, (folder / name / "endings.jsonl").open())]
        for name in ("one", "two")
    ]
    assert endings[0] == endings[1]
