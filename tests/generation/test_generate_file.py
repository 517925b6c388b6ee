"""Endings of a file of stories: every story once, however often a run is killed, and the same as without."""

import json
import os
import signal
import subprocess
import sys

import pytest
import torch
from small_model import small_model

from hf_storyend.generation.input_files import scan_stories
from hf_storyend.generation.output_file import EndingsFile
from hf_storyend.generation.run import GenerationSettings, generate_file, model_digest

WORDS = ["Anna put a cake in the oven.", "The kitchen was full of smoke.", "They watched a long film.", "Zork!"]
STORIES = [" ".join(WORDS[place % 4] for place in range(number, number + 1 + number % 3)) for number in range(21)]
RUN = {"input": "a", "num_stories": 21, "model": "b", "options": {"seed": 0}}


@pytest.fixture
def model(tokenizer):
    """A model that copies: endings depend on the story."""
    return small_model("hlstm-copy", tokenizer, max_ending_length=5)


@pytest.fixture
def stories(tmp_path):
    path = tmp_path / "stories.jsonl"
    path.write_text("".join(json.dumps({"id": number, "story": story}) + "\n" for number, story in enumerate(STORIES)))
    return path


@pytest.fixture
def run(model, tokenizer, stories, tmp_path):
    """Writes endings and returns the report."""

    def write(name="endings.jsonl", **settings):
        num_stories, digest = scan_stories(stories, None, lambda story: None)
        chosen = GenerationSettings(
            {"max_new_tokens": 5, **settings.pop("arguments", {})}, **{"batch_size": 2, **settings}
        )
        output = tmp_path / name
        return generate_file(
            model, tokenizer, stories, output, num_stories=num_stories, input_digest=digest, settings=chosen
        )

    return write


def read(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_each_line_has_the_ending_of_that_line(run, model, tokenizer, tmp_path):
    report = run()
    assert (report.num_stories, report.num_resumed) == (21, 0)
    records = read(tmp_path / "endings.jsonl")
    assert [record["id"] for record in records] == list(range(21))
    for record in records[:6]:
        ids = model.generate(
            **tokenizer([record["story"]], return_tensors="pt"), num_beams=8, length_penalty=0.0, max_new_tokens=5
        )
        assert record["ending"] == tokenizer.batch_decode(ids, skip_special_tokens=True, context=[record["story"]])[0]
    assert records[3]["unknown_words"] == ["Zork"] and "unknown_words" not in records[0]
    assert not (tmp_path / "endings.jsonl.partial").exists()


@pytest.mark.parametrize("left", ["", "{}\n", "{}\n{", "lines"])
def test_a_run_that_was_cut_off_is_resumed_to_the_same_file(run, tmp_path, left):
    arguments = {"arguments": {"do_sample": True}}
    run("whole.jsonl", **arguments)
    whole = (tmp_path / "whole.jsonl").read_text()
    run(**arguments)
    partial = tmp_path / "endings.jsonl.partial"
    (tmp_path / "endings.jsonl").rename(partial)
    lines = whole.splitlines(keepends=True)
    # One whole chunk of 16 stories and a part of the next, or less than a chunk.
    partial.write_text("".join(lines[:17]) + lines[17][:9] if left == "lines" else left)
    report = run(**arguments)
    assert report.num_resumed == (16 if left == "lines" else 0)
    assert (tmp_path / "endings.jsonl").read_text() == whole and not partial.exists()


def test_a_finished_run_is_not_repeated(run, tmp_path):
    run()
    before = (tmp_path / "endings.jsonl").stat().st_mtime_ns
    assert run().num_resumed == 21 and (tmp_path / "endings.jsonl").stat().st_mtime_ns == before


def test_another_input_model_or_setting_is_refused(run, stories, model, tmp_path):
    run()
    with pytest.raises(ValueError, match=r"the options changed since \(seed: 0 before, 1 now\)"):
        run(seed=1)
    with torch.no_grad():
        model.lm_head.bias[5] += 1
    with pytest.raises(ValueError, match="and the model changed since: start with the same, or give another `output`"):
        run()
    stories.write_text(stories.read_text().replace("oven", "owen"))
    with pytest.raises(ValueError, match="the input and the model changed"):
        run()


def test_a_file_of_others_is_not_replaced(run, tmp_path):
    (tmp_path / "endings.jsonl").write_text("mine\n")
    with pytest.raises(ValueError, match="exists already, without endings.jsonl.run.json"):
        run()
    assert (tmp_path / "endings.jsonl").read_text() == "mine\n"


def test_two_runs_at_the_same_time_do_not_mix(run, tmp_path):
    other = EndingsFile(tmp_path / "endings.jsonl", RUN, 4)
    other.begin(21)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(ValueError, match=r"endings\.jsonl is being written by another process: wait for it"):
        run()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    other.close()
    for _ in range(2):
        # A run that fails gives the file back, too.
        with pytest.raises(ValueError, match="was begun with other settings"):
            run()


def test_damaged_notes_of_a_run_are_an_error(run, tmp_path):
    run()
    (tmp_path / "endings.jsonl.run.json").write_text("{")
    with pytest.raises(ValueError, match="endings.jsonl.run.json is damaged"):
        run()


def test_several_endings_and_details(run, tmp_path):
    run("several.jsonl", arguments={"num_beams": 3, "num_return_sequences": 3})
    record = read(tmp_path / "several.jsonl")[0]
    assert len(record["endings"]) == 3 and record["ending"] == record["endings"][0]
    run("details.jsonl", details=True)
    record = read(tmp_path / "details.jsonl")[0]
    assert record["endings"][0]["ending"] == record["ending"] and record["endings"][0]["score"] < 0


def test_triples_of_the_call_and_of_a_story(run, stories, tmp_path):
    records = read(stories)
    records[2]["triples"] = [["oven", "UsedFor", "xylophone"]]
    stories.write_text("".join(json.dumps(record) + "\n" for record in records))
    with pytest.raises(ValueError, match=r"stories.jsonl, line 3: .*xylophone"):
        run(triples=(("oven", "Causes", "burnt"),))


def test_samples_do_not_depend_on_the_random_state(run, tmp_path):
    for name in ("one.jsonl", "other.jsonl"):
        run(name, arguments={"do_sample": True})
        torch.rand(3)
    assert (tmp_path / "one.jsonl").read_text() == (tmp_path / "other.jsonl").read_text()


def test_the_digest_of_a_model_is_that_of_its_parts(model, tokenizer):
    first = model_digest(model, tokenizer)
    assert first == model_digest(model, tokenizer)
    model.generation_config.max_new_tokens = 3
    assert model_digest(model, tokenizer) != first
    second = model_digest(model, tokenizer)
    tokenizer.add_triples([("oven", "Causes", "burnt")])
    assert model_digest(model, tokenizer) != second


def test_zeros_behind_a_loss_of_power_are_cut_off(tmp_path):
    output = EndingsFile(tmp_path / "a.jsonl", RUN, chunk_size=2)
    assert output.begin(21) == 0
    output.append([{"ending": "a"}, {"ending": "b"}])
    with output.partial.open("ab") as file:
        file.write(b"\0" * 50)
    assert output.begin(21) == 2
    assert output.partial.read_bytes() == b'{"ending": "a"}\n{"ending": "b"}\n'


@pytest.mark.slow
def test_kill_9_in_the_middle_loses_and_doubles_nothing(model, tokenizer, tmp_path):
    model.save_pretrained(tmp_path / "saved")
    tokenizer.save_pretrained(tmp_path / "saved")
    (tmp_path / "in.txt").write_text("".join(f"{story}\n" for story in STORIES * 20))
    command = [sys.executable, "-m", "hf_storyend", "generate", "--input", "in.txt", "--model", "saved"]
    command += ["--do_sample", "--batch_size", "2", "--output"]
    subprocess.run([*command, "whole.jsonl"], cwd=tmp_path, check=True, capture_output=True)
    partial = tmp_path / "endings.jsonl.partial"
    with subprocess.Popen([*command, "endings.jsonl"], cwd=tmp_path, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and not (partial.exists() and partial.stat().st_size > 3000):
            pass
        assert process.poll() is None, "killed too late: the test needs more stories"
        os.kill(process.pid, signal.SIGKILL)
    done = subprocess.run([*command, "endings.jsonl"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert "were there already" in done.stdout
    assert (tmp_path / "endings.jsonl").read_text() == (tmp_path / "whole.jsonl").read_text()
