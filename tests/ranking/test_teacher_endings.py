"""Endings of a teacher: whole sentences or none, the same in any batch and after an interruption."""

import importlib.util
import json
from pathlib import Path

import pytest
import torch
from ranking_cases import CONTEXTS, STORIES
from transformers import TrainingArguments

from hf_storyend.data.options import PrepareOptions
from hf_storyend.data.prepare import prepare
from hf_storyend.ranking.teacher import fine_tune_teacher
from hf_storyend.ranking.teacher_endings import save_teacher_endings, save_usable_stories, usable_ending

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="session")
def prepared(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("prepared") / "embedded"
    sizes = {"vocab_size": 300, "hidden_size": 10, "num_layers": 1, "embedding_size": 8}
    prepare(PrepareOptions(output_dir=str(directory), **sizes))
    return directory


@pytest.fixture(scope="module")
def learnt(teacher, tmp_path_factory):
    """The teacher after so many epochs that it knows the endings of the stories by heart."""
    network, words = teacher
    settings = {"per_device_train_batch_size": 2, "num_train_epochs": 40, "learning_rate": 0.02, "save_strategy": "no"}
    output = tmp_path_factory.mktemp("teacher")
    arguments = TrainingArguments(
        str(output), use_cpu=True, report_to=[], disable_tqdm=True, remove_unused_columns=False, **settings
    )
    fine_tune_teacher(network, words, STORIES, arguments)
    return network.eval(), words


@pytest.mark.parametrize("batch_size", [1, 3])
def test_each_story_has_the_teachers_likeliest_words(learnt, tmp_path, batch_size):
    network, words = learnt
    contexts = [CONTEXTS[0], CONTEXTS[1][:1], CONTEXTS[2], CONTEXTS[3]]
    path = tmp_path / "endings.jsonl"
    save_teacher_endings(path, network, words, contexts, batch_size=batch_size)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["context"] for line in lines] == contexts
    for line in lines:
        ids = words(" ".join(line["context"]))["input_ids"]
        start = len(ids)
        while len(ids) < start + 28 and ids[-1] != words.eos_token_id:
            ids.append(int(network(torch.tensor([ids])).logits[0, -1].argmax()))
        assert line["ending"] == usable_ending(words.decode(ids[start:], skip_special_tokens=True), line["context"])
    assert lines[0]["ending"] is not None


def test_an_interrupted_call_goes_on(learnt, tmp_path):
    whole, cut = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    save_teacher_endings(whole, *learnt, CONTEXTS, batch_size=1)
    lines = whole.read_text().splitlines(keepends=True)
    cut.write_text("".join(lines[:2]) + lines[2][:9])
    save_teacher_endings(cut, *learnt, CONTEXTS, batch_size=1)
    assert cut.read_text() == whole.read_text()


@pytest.mark.parametrize(
    ("text", "ending"),
    [
        (" She slept well.", "She slept well."),
        ('"Never again!" he said.\n', '"Never again!" he said.'),
        ("", None),
        ("She slept well", None),
        ("...", None),
        ("She slept.\nThen he came.", None),
        ("tom slept .", None),
    ],
)
def test_what_is_no_sentence_or_stands_in_the_story_is_none(text, ending):
    assert usable_ending(text, ["Tom slept.", "It was late."]) == ending


def test_only_usable_stories_are_saved_to_train_on(tmp_path):
    stories = [{"context": ["Tom slept."], "ending": ending} for ending in ("He woke up.", None, "It was noon.")]
    (tmp_path / "all.jsonl").write_text("".join(json.dumps(story) + "\n" for story in stories))
    assert save_usable_stories(tmp_path / "all.jsonl", tmp_path / "usable.jsonl") == 2
    lines = (tmp_path / "usable.jsonl").read_text().splitlines()
    assert [json.loads(line)["ending"] for line in lines] == ["He woke up.", "It was noon."]


@pytest.mark.slow
def test_the_example_runs_all_steps_and_skips_those_that_are_done(teacher, prepared, tmp_path, monkeypatch):
    network, words = teacher
    for part in (network, words):
        part.save_pretrained(tmp_path / "teacher")
    lines = [json.dumps({"context": context, "ending": ending}) + "\n" for context, ending in STORIES]
    (tmp_path / "train.jsonl").write_text("".join(lines))
    settings = f"data_dir: {prepared}\nmax_train_samples: 4\nmax_steps: 2\nsystem: ie\nmax_eval_samples: 2\n"
    (tmp_path / "student.yaml").write_text(settings)
    # What an untrained teacher writes is no sentence.
    monkeypatch.setattr("hf_storyend.ranking.teacher_endings.usable_ending", lambda text, context: "She slept.")
    command = [
        *("--teacher", str(tmp_path / "teacher"), "--stories", str(tmp_path / "train.jsonl")),
        *("--config", str(tmp_path / "student.yaml"), "--output_dir", str(tmp_path / "out")),
        *("--num_teacher_stories", "2", "--num_stories", "2", "--num_frozen_layers", "1"),
    ]
    specification = importlib.util.spec_from_file_location("learn_from_teacher", EXAMPLES / "learn_from_teacher.py")
    example = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(example)
    example.main(command)
    extra = [json.loads(line) for line in (tmp_path / "out" / "extra_stories.jsonl").read_text().splitlines()]
    assert extra == [{"context": context, "ending": "She slept."} for context in CONTEXTS[2:]]
    student = (tmp_path / "out" / "student" / "model.safetensors").read_bytes()
    example.main(command)
    assert (tmp_path / "out" / "student" / "model.safetensors").read_bytes() == student
