"""What is published of a comparison: numbers, curves, logs, cards and endings; paths and the corpus stay at home."""

import gzip
import json
import runpy
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hf_storyend.comparison import compare, publish_comparison, read_published_endings
from hf_storyend.comparison.endings import letters
from hf_storyend.data.stories import load_stories
from hf_storyend.hub import render_card_of
from hf_storyend.hub.card import render_published_card

ROOT = Path(__file__).parents[2]


@pytest.fixture
def published(copied, data, tmp_path) -> Path:
    publish_comparison(copied, tmp_path / "published", data)
    return tmp_path / "published"


def all_texts(folder: Path) -> str:
    contents = [
        gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".png"
    ]
    return b"\n".join(contents).decode()


def test_the_files_of_every_row(published):
    names = {path.relative_to(published).as_posix() for path in published.rglob("*") if path.is_file()}
    whole = {
        "comparison.json",
        "comparison.md",
        "comparison.png",
        "curves.json",
        "curves.png",
        "claims.md",
        "README.md",
    }
    of_row = {"metrics.json", "train_log.jsonl.gz", "endings.jsonl.gz", "evaluations.json", "card.md"}
    assert names == whole | {f"rows/{row}/{name}" for row in ("seq2seq", "ie", "ie.state") for name in of_row}


def test_neither_a_sentence_of_the_corpus_nor_a_path_is_published(published, copied, data):
    text = all_texts(published)
    assert str(copied) not in text and str(data.parent) not in text
    published_letters = letters(text)
    stories = load_stories(str(data / "stories"))
    sentences = [sentence for split in stories.values() for context in split["context"] for sentence in context]
    endings = [ending for split in stories.values() for ending in split["ending"]]
    # Short ones may be part of anything.
    found = [one for one in (*sentences, *endings) if len(letters(one)) > 25 and letters(one) in published_letters]
    assert found == []


def test_published_endings_are_those_that_were_generated(published, copied, data):
    lines = (copied / "systems" / "ie" / "test" / "endings.jsonl").read_text().splitlines()
    generated = [json.loads(line)["ending"] for line in lines]
    assert read_published_endings(published / "rows" / "ie" / "endings.jsonl.gz", data) == generated


def test_curves_and_logs_are_those_of_the_run(published, copied):
    log = (copied / "systems" / "ie" / "train_log.jsonl").read_bytes()
    assert gzip.decompress((published / "rows" / "ie" / "train_log.jsonl.gz").read_bytes()) == log
    curve = json.loads((published / "curves.json").read_text())["ie"]
    assert [point["step"] for point in curve["training"]] == [1, 2]
    assert all(point["perplexity"] > 1 for point in (*curve["training"], *curve["validation"]))


def test_the_card_of_a_row_can_be_written_again_from_what_is_published(published, copied):
    folder = published / "rows" / "ie"
    text = (folder / "card.md").read_text()
    assert text == render_published_card(folder) and "### Learning curve" in text and "### Ablations" in text
    of_run = render_card_of(copied / "systems" / "ie", "my_model")
    assert text == of_run.replace("![Perplexity, BLEU and learning rate over the updates](curves.png)\n\n", "")


def test_the_readme_tells_what_was_trained_and_how_to_score_again(published):
    text = (published / "README.md").read_text()
    assert "3 rows" in text and "dropout: 0.1" in text and "score_published_endings.py" in text
    assert "prediction_vector" not in text, "Not all rows have the same."


def test_the_numbers_can_be_computed_again(published, data, monkeypatch, capsys):
    script = ROOT / "benchmarks" / "score_published_endings.py"
    monkeypatch.setattr(sys, "argv", [str(script), str(published), "--data_dir", str(data)])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(script), run_name="__main__")
    assert ended.value.code == 0 and capsys.readouterr().out.count("  as published") == 3
    changed = published / "rows" / "ie" / "metrics.json"
    content = json.loads(changed.read_text())
    content["metrics"]["bleu_1"] += 1
    changed.write_text(json.dumps(content))
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(script), run_name="__main__")
    assert ended.value.code == 1 and "not as published" in capsys.readouterr().out


def test_a_comparison_publishes_its_finished_rows(options, training, tmp_path):
    compare(replace(options, systems="ie,hlstm", train=False, export_dir=str(tmp_path / "p")), training)
    assert [path.name for path in (tmp_path / "p" / "rows").iterdir()] == ["ie"]
