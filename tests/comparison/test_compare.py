"""Systems under one budget: one table, and what is done is not done again."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from training_runs import small_options

from hf_storyend.comparison import ComparisonOptions, compare, markdown_table
from hf_storyend.preparation import PreparationOptions, prepare


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("compared") / "data"
    prepare(PreparationOptions(vocab_size=300, hidden_size=8, num_layers=1, embedding_size=6), directory)
    return directory


@pytest.fixture
def options(data, tmp_path) -> ComparisonOptions:
    training = small_options(data, tmp_path / "unused", max_steps=2, max_eval_samples=2)
    return ComparisonOptions(("seq2seq", "hlstm-copy"), training, generation={"max_new_tokens": 4}, max_stories=5)


def test_a_table_of_every_system_as_text_numbers_and_picture(options, tmp_path):
    comparison = compare(options, tmp_path / "out")
    assert list(comparison["systems"]) == ["seq2seq", "hlstm-copy"]
    for result in comparison["systems"].values():
        assert result["num_stories"] == 5 and result["updates"] == 2 and result["parameters"] > 0
        assert {"perplexity", "sampled_perplexity", "bleu_1", "bleu_2"} <= result["metrics"].keys()
    assert json.loads((tmp_path / "out" / "comparison.json").read_text()) == comparison
    table = (tmp_path / "out" / "comparison.md").read_text()
    assert "| Seq2Seq |" in table and "| HLSTM+Copy |" in table and "18.64" in table and "2 updates" in table
    assert "| one constant ending |" in table and "| copy of the last sentence |" in table
    assert (tmp_path / "out" / "comparison.png").read_bytes().startswith(b"\x89PNG")
    endings = tmp_path / "out" / "systems" / "seq2seq" / "test" / "endings.jsonl"
    assert len(endings.read_text().splitlines()) == 5


def test_what_is_done_is_not_done_again(options, tmp_path):
    first = compare(options, tmp_path / "out")
    said: list[str] = []
    more = replace(options, systems=("seq2seq", "hlstm-copy", "ie"))
    second = compare(more, tmp_path / "out", said.append)
    assert said == ["seq2seq: done before.", "hlstm-copy: done before.", "ie: training.", "ie: evaluating on test."]
    assert {name: second["systems"][name] for name in first["systems"]} == first["systems"]


def test_other_options_are_evaluated_anew(options, tmp_path):
    one = replace(options, systems=("seq2seq",))
    compare(one, tmp_path / "out")
    said: list[str] = []
    assert (
        compare(replace(one, max_stories=3), tmp_path / "out", said.append)["systems"]["seq2seq"]["num_stories"] == 3
    )
    assert said[0] == "seq2seq: training.", "It goes on from its last checkpoint, so there is nothing left to train."


def test_wrong_names_are_refused():
    with pytest.raises(ValueError, match="There is no system `gpt`"):
        ComparisonOptions(("ie", "gpt"))
    with pytest.raises(ValueError, match="nothing to compare"):
        ComparisonOptions(())


def test_a_rate_that_was_not_measured_is_called_so():
    result = {"metrics": {}, "trivial_baselines": {}, "num_stories": 1, "parameters": 5, "stories_per_second": None, "device": ""}
    assert "not measured" in markdown_table({"systems": {"ie": result}, "split": "test", "budget": "nothing"})
