"""Comparison of systems: table, chart and JSON; finished systems are not trained again."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from training_runs import small_options

from hf_storyend import comparison
from hf_storyend.comparison import compare, markdown_table
from hf_storyend.data.options import PrepareOptions
from hf_storyend.data.prepare import prepare
from hf_storyend.training import ComparisonOptions, TrainingOptions

RESULT = {
    "metrics": {},
    "trivial_baselines": {},
    "num_stories": 1,
    "parameters": 5,
    "stories_per_second": None,
    "device": "",
}


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("compared") / "data"
    prepare(PrepareOptions(output_dir=directory, vocab_size=300, hidden_size=8, num_layers=1, embedding_size=6))
    return directory


@pytest.fixture
def training(data, tmp_path) -> TrainingOptions:
    return small_options(data, tmp_path / "unused", max_steps=2, max_eval_samples=2)


@pytest.fixture
def options(tmp_path) -> ComparisonOptions:
    output = str(tmp_path / "out")
    return ComparisonOptions("seq2seq, hlstm-copy", output_dir=output, max_new_tokens=4, max_stories=5)


@pytest.fixture
def messages(caplog):
    """Returns the messages of the comparison since the last call."""
    caplog.set_level("INFO", logger="hf_storyend.comparison")

    def take() -> list[str]:
        taken = [record.getMessage() for record in caplog.records if record.name == "hf_storyend.comparison"]
        caplog.clear()
        return taken

    return take


def test_results_are_written_as_table_json_and_chart(options, training, tmp_path):
    result = compare(options, training)
    assert list(result["systems"]) == ["seq2seq", "hlstm-copy"]
    for system in result["systems"].values():
        assert system["num_stories"] == 5 and system["updates"] == 2 and system["parameters"] > 0
        assert {"perplexity", "sampled_perplexity", "bleu_1", "bleu_2"} <= system["metrics"].keys()
    assert json.loads((tmp_path / "out" / "comparison.json").read_text()) == result
    table = (tmp_path / "out" / "comparison.md").read_text()
    assert "| Seq2Seq |" in table and "| HLSTM+Copy |" in table and "18.64" in table and "2 updates" in table
    assert "| one constant ending |" in table and "| copy of the last sentence |" in table
    assert (tmp_path / "out" / "comparison.png").read_bytes().startswith(b"\x89PNG")
    endings = tmp_path / "out" / "systems" / "seq2seq" / "test" / "endings.jsonl"
    assert len(endings.read_text().splitlines()) == 5


def test_finished_systems_are_not_trained_again(options, training, messages):
    first = compare(options, training)
    messages()
    killed = Path(options.output_dir) / ".comparison.json.0a1b2c3d.partial"
    killed.write_text("{")
    second = compare(replace(options, systems="seq2seq,hlstm-copy,ie"), training)
    finished = ["seq2seq: already finished.", "hlstm-copy: already finished."]
    assert messages() == [*finished, "ie: training.", "ie: evaluating on test."]
    assert {name: second["systems"][name] for name in first["systems"]} == first["systems"]
    assert not killed.exists(), "What a killed comparison left behind is deleted."


def test_other_settings_are_evaluated_again(options, training, messages):
    one = replace(options, systems="seq2seq")
    compare(one, training)
    messages()
    assert compare(replace(one, max_stories=3), training)["systems"]["seq2seq"]["num_stories"] == 3
    assert messages()[0] == "seq2seq: training.", "It resumes from its last checkpoint and has nothing left to train."


def test_training_options_come_from_the_file_and_then_from_the_comparison(data, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(comparison, "_finished_result", lambda run, options: seen.append(run) or RESULT)
    file = tmp_path / "options.yaml"
    file.write_text("dropout: 0.3\nmax_steps: 9\nlearning_rate: 1e-3\n")
    given = {"data_dir": str(data), "output_dir": str(tmp_path), "options_file": str(file)}
    for budget in ({}, {"max_steps": 4}, {"max_minutes": 2.0}):
        compare(ComparisonOptions("ie", **given, **budget))
    assert [(run.max_steps, run.max_minutes) for run in seen] == [(9, None), (4, None), (10**9, 2.0)]
    assert {(run.data_dir, run.dropout, run.learning_rate) for run in seen} == {(str(data), 0.3, 1e-3)}


def test_throughput_may_be_unknown():
    assert "not measured" in markdown_table({"systems": {"ie": RESULT}, "split": "test", "budget": "nothing"})
