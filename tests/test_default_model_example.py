"""`examples/default_model.py` on small data, run twice."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml
from safetensors.torch import load_file

from hf_storyend import IncrementalEncoderForEndingGeneration
from hf_storyend.data import PrepareOptions
from hf_storyend.training import TrainingOptions

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture
def sources(tmp_path):
    """Three words with vectors, some triples, and a recipe of two runs of two updates."""
    heads = ["cake", "dog", "school", "car", "game", "rain", "friend", "house", "work", "mother"]
    pairs = [f"/r/RelatedTo\t{head}\t{tail}\n" for head in heads for tail in ("happy", "home", "smile", *heads)]
    (tmp_path / "triples.tsv").write_text("".join(pairs))
    (tmp_path / "glove.txt").write_text("the 0.1 0.2 0.3\noven 0.3 0.1 0.2\ncake 0.2 0.3 0.1\n")
    shared = {"max_eval_samples": 2, "max_train_samples": 16, "logging_steps": 1, "hidden_size": 8, "num_layers": 1}
    runs = [
        {"system": "ie-copy", "max_steps": 4, "eval_steps": 1, "save_steps": 2, "stop_after": 2},
        {"system": "ie-copy-tails", "max_steps": 2, "seed": 1, "num_sampled_classes": 50},
    ]
    recipe = {
        "shared": shared,
        "runs": runs,
        "prepare": {"policy": "story_lift", "max_triples": 3},
    }
    (tmp_path / "recipe.yaml").write_text(yaml.dump(recipe))
    return tmp_path


@pytest.mark.slow
def test_model_and_card_are_written_and_finished_runs_are_skipped(sources):
    command = [sys.executable, str(EXAMPLES / "default_model.py"), "--stories", "embedded"]
    command += [
        "--conceptnet",
        "triples.tsv",
        "--glove",
        "glove.txt",
        "--recipe",
        "recipe.yaml",
        "--output_dir",
        "made",
    ]
    first = subprocess.run(command, cwd=sources, capture_output=True, text=True)
    assert first.returncode == 0, first.stderr
    model = IncrementalEncoderForEndingGeneration.from_pretrained(sources / "made" / "model")
    assert model.config.copy and model.config.embedding_size == 3 and model.generation_config.num_beams is None
    card = (sources / "made" / "model" / "README.md").read_text()
    assert "20 endings, not picked" in card and "ie-copy-tails" in card and "without sentence 1" in card
    assert "the last of 2 runs" in card and "Their updates: 2, 2;" in card
    last, shipped = (load_file(sources / "made" / name / "model.safetensors") for name in ("run_2", "model"))
    for name, weight in shipped.items():
        torch.testing.assert_close(weight.float(), last[name], rtol=1e-3, atol=1e-4)
    logs = [(sources / "made" / f"run_{number}" / "train_log.jsonl").read_text() for number in (1, 2)]
    again = subprocess.run(command, cwd=sources, capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    assert logs == [(sources / "made" / f"run_{number}" / "train_log.jsonl").read_text() for number in (1, 2)]
    numbers = [json.loads(result.stdout[result.stdout.index("{\n") :]) for result in (first, again)]
    assert numbers[0]["perplexity"] == numbers[1]["perplexity"]


def test_the_recipe_of_the_package_s_model_is_valid():
    recipe = yaml.safe_load((EXAMPLES / "default_model.yaml").read_text())
    assert [run["system"] for run in recipe["runs"]] == ["ie-copy", *["ie-copy-tails"] * 5]
    for run in recipe["runs"]:
        settings = {**recipe["shared"], **run}
        settings.pop("stop_after", None)
        TrainingOptions(**settings)
    PrepareOptions(stories="own.jsonl", conceptnet=("triples.tsv",), glove="glove.txt", **recipe["prepare"])
