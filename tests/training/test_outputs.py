"""Files of a finished run."""

import json
from pathlib import Path

from training_runs import read_log
from transformers import AutoModel, AutoTokenizer


def test_output_dir_has_the_model_and_all_reports(finished):
    directory = Path(finished.output_dir)
    model = AutoModel.from_pretrained(directory)
    tokenizer = AutoTokenizer.from_pretrained(directory)
    inputs = tokenizer("Tom made a cake. It burnt.", return_tensors="pt")
    assert len(tokenizer.batch_decode(model.generate(**inputs, max_new_tokens=5), skip_special_tokens=True)) == 1
    names = {path.name for path in directory.iterdir()}
    assert {
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer_config.json",
        "modeling_incremental_encoder.py",
        "README.md",
        "metrics.json",
        "trainer_state.json",
        "train_log.jsonl",
        "training_options.json",
        "validation_endings.jsonl",
        "curves.png",
        "best",
        "checkpoint-18",
        "checkpoint-20",
        "logs",
    } <= names
    assert not [name for name in names if name.endswith(".partial")]


def test_the_log_has_every_update_and_every_evaluation(finished):
    losses = [event for event in read_log(finished) if "loss" in event]
    assert [event["step"] for event in losses] == list(range(1, 21))
    assert all(event["stories_per_second"] > 0 and event["peak_memory_mb"] > 0 for event in losses)
    evaluations = [event for event in read_log(finished) if "eval_perplexity" in event]
    # Every seven updates and at the last one; then once more on all stories.
    assert [event["step"] for event in evaluations] == [7, 14, 20, 20]
    assert [event["eval_num_stories"] for event in evaluations] == [4, 4, 4, 33]
    assert {"eval_sampled_perplexity", "eval_bleu_1", "eval_bleu_2"} <= evaluations[0].keys()


def test_metrics_state_and_card_agree(finished):
    directory = Path(finished.output_dir)
    metrics = json.loads((directory / "metrics.json").read_text())
    state = json.loads((directory / "trainer_state.json").read_text())
    assert state["global_step"] == 20 and len(state["log_history"]) == len(read_log(finished))
    assert metrics["validation"]["perplexity"] == read_log(finished)[-1]["eval_perplexity"]
    card = (directory / "README.md").read_text()
    assert f"{metrics['validation']['bleu_1']:.4g}" in card and "ie-msa-ca" in card
    endings = (directory / "validation_endings.jsonl").read_text().splitlines()
    assert len(endings) == 33 and json.loads(endings[0])["context"]


def test_curves_are_drawn(finished):
    assert (Path(finished.output_dir) / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_trackers_receive_the_metrics(finished):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    folder = next((Path(finished.output_dir) / "logs").rglob("events.out.tfevents*")).parent
    scalars = EventAccumulator(str(folder))
    scalars.Reload()
    assert {"loss", "eval_perplexity"} <= set(scalars.Tags()["scalars"])
    assert len(scalars.Scalars("loss")) == 20
