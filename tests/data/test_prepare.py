"""From raw files to a directory that training starts from; the second time it is there already."""

import gzip
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from datasets import Dataset, DatasetDict, load_from_disk

from hf_storyend import IncrementalEncoderForEndingGeneration, IncrementalEncoderTokenizer
from hf_storyend.data import PrepareOptions, StoryCollator, build_vocabulary, prepare, tokenise_stories
from hf_storyend.data.embedded import embedded_stories
from hf_storyend.data.sources import EMBEDDED_DATASET, data_sources, dataset_name
from hf_storyend.data.story_words import find_names


@pytest.fixture
def files(tmp_path) -> dict[str, Path]:
    """A hundred stories, a dump of four lines and a few vectors, all gzipped."""
    rows = [json.dumps(story) + "\n" for story in embedded_stories()[:100]]
    stories, dump, vectors = tmp_path / "stories.jsonl.gz", tmp_path / "dump.csv.gz", tmp_path / "vectors.txt.gz"
    stories.write_bytes(gzip.compress("".join(rows).encode()))
    edges = [("cook", "UsedFor", "food"), ("house", "HasA", "door"), ("door", "UsedFor", "open")]
    lines = [
        f'/a/[/r/{r}/,/c/en/{h}/,/c/en/{t}/]\t/r/{r}\t/c/en/{h}\t/c/en/{t}\t{{"weight": 1.0}}\n' for h, r, t in edges
    ]
    dump.write_bytes(gzip.compress("".join([*lines, "not a line of a dump\n"]).encode()))
    vectors.write_bytes(gzip.compress(b"the 0.1 0.2 0.3\na 0.3 0.1 0.2\nhe -0.1 0.5 0.4\n"))
    return {"stories": stories, "conceptnet": dump, "glove": vectors}


def small(output_dir: Path, **changes: Any) -> PrepareOptions:
    return PrepareOptions(
        **{"output_dir": output_dir, "hidden_size": 8, "num_layers": 1, "embedding_size": 6, **changes}
    )


@pytest.fixture(scope="module")
def embedded(tmp_path_factory) -> tuple[Path, dict]:
    folder = tmp_path_factory.mktemp("prepared") / "out"
    return folder, prepare(small(folder))


def test_the_embedded_corpus_needs_no_files(embedded):
    folder, report = embedded
    model = IncrementalEncoderForEndingGeneration.from_pretrained(folder)
    tokenizer = IncrementalEncoderTokenizer.from_pretrained(folder)
    endings = model.generate(**tokenizer("Mei put a cake in the oven.", return_tensors="pt"), max_new_tokens=3)
    assert endings.shape[0] == 1
    tokenised = load_from_disk(folder / "tokenised")
    assert {name: len(rows) for name, rows in tokenised.items()} == {"train": 594, "validation": 33, "test": 33}
    columns = ["input_ids", "labels", "length", "copy_ids", "copy_labels", "oov_words"]
    assert tokenised["train"].column_names == columns
    assert load_from_disk(folder / "stories")["test"].column_names == ["context", "ending"]
    assert json.loads((folder / "report.json").read_text()) == {
        name: value for name, value in report.items() if name != "cached"
    }
    assert report["stories"]["train"]["unknown_words"] == 0
    assert report["stories"]["train"]["padding_by_length"] < report["stories"]["train"]["padding_as_they_come"]
    assert "No story leaks" in report["leaks"]
    page = (folder / "report.md").read_text()
    assert "| train | 594 |" in page and "Knowledge" in page


def test_inflected_words_find_the_embedded_triples(embedded):
    tokenizer = IncrementalEncoderTokenizer.from_pretrained(embedded[0])
    assert tokenizer.knowledge.concepts["cakes"] == ["cake"]
    assert [triple[0] for triple in tokenizer.knowledge.of("cakes")] == ["cake"] * len(tokenizer.knowledge.of("cake"))


def test_files_of_ones_own(files, tmp_path):
    options = small(
        tmp_path / "out",
        stories=str(files["stories"]),
        conceptnet=(str(files["conceptnet"]),),
        glove=str(files["glove"]),
        embedding_size=None,
        vocab_size=600,
        num_train=80,
    )
    report = prepare(options)
    assert [split["stories"] for split in report["stories"].values()] == [80, 10, 10]
    assert report["vocabulary"]["size"] == 600 and report["stories"]["test"]["unknown_words"] > 0
    assert "3 dimensions" in report["vectors"]
    assert report["knowledge"]["reading"]["num_malformed"] == 1
    model = IncrementalEncoderForEndingGeneration.from_pretrained(tmp_path / "out")
    tokenizer = IncrementalEncoderTokenizer.from_pretrained(tmp_path / "out")
    vector = model.get_input_embeddings().weight[tokenizer.convert_tokens_to_ids("the")]
    torch.testing.assert_close(vector.detach(), torch.tensor([0.1, 0.2, 0.3]))
    assert tokenizer.knowledge.of("door") == [("door", "UsedFor", "open")]


def test_the_same_again_is_a_cache_hit(files, tmp_path):
    options = small(tmp_path / "out", stories=str(files["stories"]))
    first = prepare(options)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")}
    second = prepare(options)
    assert not first["cached"] and second["cached"]
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")} == before
    with pytest.raises(ValueError, match="was prepared from other inputs"):
        prepare(replace(options, seed=1))
    files["stories"].write_bytes(gzip.compress(gzip.decompress(files["stories"].read_bytes()) * 2))
    with pytest.raises(ValueError, match="was prepared from other inputs"):
        prepare(options)
    assert "within train: 90 stories more than once" in prepare(replace(options, overwrite=True))["leaks"]


def test_equal_inputs_give_equal_files(embedded, tmp_path):
    prepare(small(tmp_path / "again"))
    for file in ("model.safetensors", "vocab.json", "knowledge.json", "report.json"):
        assert (tmp_path / "again" / file).read_bytes() == (embedded[0] / file).read_bytes(), file


def test_a_directory_of_someone_else_is_left_alone(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("years of work")
    with pytest.raises(ValueError, match="is not a prepared directory"):
        prepare(small(tmp_path / "out"))
    assert (tmp_path / "out" / "thesis.tex").read_text() == "years of work"


def test_nothing_is_left_behind_by_a_failure(files, tmp_path):
    files["glove"].write_bytes(gzip.compress(b"the 0.1 0.2\na 0.1\n"))
    with pytest.raises(ValueError, match=r"vectors.txt.gz.*line 2"):
        prepare(small(tmp_path / "out", stories=files["stories"], glove=files["glove"], embedding_size=None))
    assert not (tmp_path / "out").exists() and not list(tmp_path.glob(".out*"))
    with pytest.raises(ValueError, match="no-such-file is not a file"):
        prepare(small(tmp_path / "out", glove="no-such-file"))


def storyend(*arguments: str, cwd: Path) -> subprocess.CompletedProcess:
    command = [str(Path(sys.executable).parent / "storyend"), *arguments]
    environment = {**os.environ, "COLUMNS": "160", "HF_DATASETS_CACHE": str(cwd / "cache")}
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment)


def test_command(tmp_path):
    arguments = [
        "prepare",
        "--output_dir",
        "out",
        "--hidden_size",
        "8",
        "--embedding-size",
        "6",
        "--knowledge",
        "none",
    ]
    first = storyend(*arguments, cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert "Prepared data" in first.stdout and "out is ready" in first.stdout
    second = storyend(*arguments, "--json", cwd=tmp_path)
    assert json.loads(second.stdout)["cached"] is True
    assert json.loads(second.stdout)["options"]["knowledge"] is None


def test_command_errors_are_one_line(tmp_path):
    (tmp_path / "bad.jsonl").write_text('{"context": ["One."], "ending": "Two."}\n{"context": [], "ending": "x"}\n')
    result = storyend("prepare", "--stories", "bad.jsonl", "--output_dir", "out", cwd=tmp_path)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr and len(result.stderr.strip().splitlines()) == 1
    assert "bad.jsonl, line 2" in result.stderr
    assert storyend("prepare", "--vocab-size", "many", cwd=tmp_path).returncode == 2
    help_page = storyend("prepare", "--help", cwd=tmp_path).stdout
    assert "Example:" in help_page and "--conceptnet" in help_page


@pytest.fixture(scope="module")
def lifted(tmp_path_factory) -> tuple[Path, dict]:
    folder = tmp_path_factory.mktemp("lifted") / "out"
    return folder, prepare(small(folder, policy="story_lift", max_triples=4))


def test_story_lift_selects_triples_by_the_training_stories(lifted):
    folder, report = lifted
    table = IncrementalEncoderTokenizer.from_pretrained(folder).knowledge
    assert report["knowledge"]["policy"] == "story_lift"
    assert all(0 < len(rows) <= 4 for rows in table.triples.values())
    assert all(table.weights[triple] >= np.log(1.5) - 1e-3 for rows in table.triples.values() for triple in rows)


def test_story_lift_leaves_training_stories_out_of_their_own_weights(lifted):
    folder, _ = lifted
    tokenizer = IncrementalEncoderTokenizer.from_pretrained(folder)
    words = {index: word for word, index in tokenizer.get_vocab().items()}
    tokenised = load_from_disk(folder / "tokenised")
    assert "held_out_rows" not in tokenised["validation"].column_names
    num_rows = 0
    for row in tokenised["train"]:
        context = {word for sentence in row["input_ids"] for word in sentence}
        found = set(zip(row["held_out_rows"], row["held_out_tails"], strict=True))
        table = tokenizer.knowledge
        lemmas_of_context = {words[word] for word in context}
        expected = {
            (word, tokenizer.get_vocab()[tail])
            for word in context
            for _, _, tail in table.of(words[word])
            if {tokenizer.get_vocab()[form] for form in table.forms_of(tail)} & set(row["labels"])
            and not set(table.forms_of(tail)) & lemmas_of_context
        }
        assert found == expected
        assert len(row["held_out_weights"]) == len(found)
        num_rows += len(found)
    assert num_rows > 0


def test_the_collator_uses_the_weights_without_the_story(lifted):
    folder, _ = lifted
    tokenizer = IncrementalEncoderTokenizer.from_pretrained(folder, tail_pointer=True)
    rows = load_from_disk(folder / "tokenised")["train"]
    row = next(row for row in rows if any(weight == weight for weight in row["held_out_weights"]))
    batch = StoryCollator(tokenizer)([row])
    weight = next(weight for weight in row["held_out_weights"] if weight == weight)
    assert (batch["triple_weights"] - weight).abs().min() < 1e-5


@pytest.mark.parametrize("policy", ["tail_frequency", "story_lift"])
def test_the_report_states_reach(tmp_path, policy):
    report = prepare(small(tmp_path / "out", policy=policy))
    reach = report["knowledge"]["reach"]
    assert 0 < reach["reach"] < 1
    assert reach["num_stories"] == 33
    assert f"reach: {reach['reach']:.1%} of the" in (tmp_path / "out" / "report.md").read_text()


def test_several_knowledge_files_at_once(tmp_path, files):
    more = tmp_path / "more.tsv"
    more.write_text("UsedFor\topen door\tgo home\n")
    options = small(tmp_path / "out", **{**files, "conceptnet": (files["conceptnet"], more), "embedding_size": None})
    report = prepare(replace(options, policy="story_lift", min_lift=1.0))
    assert report["knowledge"]["reading"]["num_edges"] == 4


def test_names_open_sentences_and_are_not_in_lower_case():
    sentences = [["Tom went home.", "She met Tom."], ["It was Christmas.", "All like Christmas, and Tom does, too."]]
    sentences += [["Suddenly the dog ran.", "They saw it on Christmas, on Christmas!", "Christmas was over."]]
    vocabulary = build_vocabulary(text for story in sentences for text in [*story, "So Tom ran at Christmas."])
    tokenizer = IncrementalEncoderTokenizer(vocab=vocabulary.ids)
    stories = DatasetDict(train=Dataset.from_dict({"context": [*sentences, ["Tom ran."]], "ending": ["Tom ran."] * 4}))
    assert find_names(tokenise_stories(stories, tokenizer)["train"], vocabulary) == ["tom"]


def test_what_the_data_were_made_of_is_known_without_paths(files, tmp_path):
    prepare(small(tmp_path / "named", embedding_size=3, **files))
    assert data_sources(tmp_path / "named") == {
        "stories": "stories.jsonl.gz",
        "num_stories": {"train": 90, "validation": 5, "test": 5},
        "conceptnet": ["dump.csv.gz"],
        "glove": "vectors.txt.gz",
    }
    assert dataset_name(str(tmp_path / "named")) == "stories" and dataset_name("embedded") == EMBEDDED_DATASET
    assert data_sources(tmp_path) is None and dataset_name(str(tmp_path / "fables.csv")) == "fables"


def test_a_dataset_of_the_hub_keeps_its_owner(tmp_path):
    report = {
        "options": {"stories": "me/fables", "conceptnet": ["/home/me/dump.csv"], "glove": None},
        "stories": {"train": {"stories": 3}},
        "inputs": {"/home/me/dump.csv": "abc"},
    }
    (tmp_path / "report.json").write_text(json.dumps(report))
    sources = {"stories": "me/fables", "num_stories": {"train": 3}, "conceptnet": ["dump.csv"], "glove": None}
    assert data_sources(tmp_path) == sources and dataset_name(str(tmp_path)) == "me/fables"
    for damaged in ("{", "[]", '{"options": 3}', '{"options": {}, "stories": {}, "inputs": {}}'):
        (tmp_path / "report.json").write_text(damaged)
        assert data_sources(tmp_path) is None
