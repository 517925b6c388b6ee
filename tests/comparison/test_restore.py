"""Rows of another machine: published there, finished here, without weights."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hf_storyend.comparison import ComparisonOptions, compare, publish_comparison


@pytest.fixture
def published(copied, data, tmp_path) -> Path:
    publish_comparison(copied, tmp_path / "published", data)
    return tmp_path / "published"


@pytest.fixture
def elsewhere(options, published, tmp_path) -> ComparisonOptions:
    return replace(options, output_dir=str(tmp_path / "elsewhere"), published=str(published))


def test_a_table_can_be_made_from_published_rows(elsewhere, training, finished, messages):
    result = compare(elsewhere, training)
    assert not [message for message in messages() if "training" in message or "evaluating" in message]
    for name, row in finished[1]["systems"].items():
        own = result["systems"][name]
        assert own == {**row, "endings": own["endings"]}, "Endings have the digest of the restored file."
    for pair, whole in zip(result["pairs"], finished[1]["pairs"], strict=True):
        for metric in ("perplexity", "bleu_1", "bleu_2"):
            assert pair[metric]["difference"] == pytest.approx(whole[metric]["difference"], abs=0.01)
    assert not list(Path(elsewhere.output_dir).rglob("*.safetensors"))


def test_rows_that_were_not_published_are_trained_and_all_are_exported(elsewhere, training, messages, published):
    together = replace(elsewhere, systems="ie,hlstm", export_dir=elsewhere.published)
    before = (published / "rows" / "ie" / "endings.jsonl.gz").read_bytes()
    result = compare(together, training)
    assert list(result["systems"]) == ["ie", "hlstm"] and "hlstm: training." in messages()
    assert "ie: training." not in messages()
    assert (published / "rows" / "ie" / "endings.jsonl.gz").read_bytes() == before
    assert (published / "rows" / "hlstm" / "endings.jsonl.gz").is_file()
    assert list(json.loads((published / "comparison.json").read_text())["systems"]) == ["ie", "hlstm"]
    # A second call finds everything done, and takes the rows from its own export.
    again = compare(replace(together, output_dir=f"{elsewhere.output_dir}_again"), training)
    assert again["systems"].keys() == result["systems"].keys()


def test_a_run_of_the_directory_itself_comes_first(options, published, training):
    changed = published / "rows" / "ie" / "metrics.json"
    changed.write_text(changed.read_text().replace('"perplexity"', '"other"'))
    assert compare(replace(options, published=str(published)), training)["systems"]["ie"]["metrics"]["perplexity"]


def test_rows_of_other_options_or_data_are_refused(elsewhere, training, published):
    with pytest.raises(ValueError, match=r"rows/seq2seq is of another run: `dropout` was 0\.1, is 0\.3"):
        compare(elsewhere, replace(training, dropout=0.3))
    metrics = json.loads((published / "rows" / "seq2seq" / "metrics.json").read_text())
    (published / "rows" / "seq2seq" / "metrics.json").write_text(json.dumps({**metrics, "identity": "0"}))
    with pytest.raises(ValueError, match="rows/seq2seq was trained with these options, but on other data"):
        compare(elsewhere, training)
    assert not (Path(elsewhere.output_dir) / "systems" / "seq2seq").exists()


def test_a_directory_without_rows_is_refused(elsewhere, training, tmp_path):
    with pytest.raises(ValueError, match="no comparison was published there"):
        compare(replace(elsewhere, published=str(tmp_path)), training)


@pytest.mark.parametrize("place", ["here", "there"])
def test_rows_with_further_stories_are_published_without_their_place(training, tmp_path, data, place):
    """The content of the file decides whether a row is another machine's, and not where it lies."""
    extra = tmp_path / "one" / "extra.jsonl"
    extra.parent.mkdir()
    extra.write_text(json.dumps({"context": ["The river was frozen."], "ending": "They skated home."}) + "\n")
    options = ComparisonOptions("seq2seq", output_dir=str(tmp_path / "out"), max_stories=3, bootstrap_samples=0)
    with_export = replace(options, export_dir=str(tmp_path / "published"))
    first = compare(with_export, replace(training, extra_stories=str(extra)))
    assert str(tmp_path) not in (tmp_path / "published" / "rows" / "seq2seq" / "metrics.json").read_text()
    if place == "there":
        extra = extra.rename(tmp_path / "moved.jsonl")
    other = replace(options, output_dir=str(tmp_path / "again"), published=str(tmp_path / "published"))
    again = compare(other, replace(training, extra_stories=str(extra)))
    assert again["systems"]["seq2seq"]["metrics"] == first["systems"]["seq2seq"]["metrics"]
    assert not list((tmp_path / "again").rglob("*.safetensors"))
