"""What befalls a long training run: a process dies, the clock jumps, a checkpoint holds what it should not."""

import json
import os
import signal
import time
from pathlib import Path

import pytest
from robustness.targets import TARGETS
from safetensors.torch import load_file, save_file
from training_runs import Rank, free_port, output_of, small_options, start_run, wait_for

from hf_storyend.data import PrepareOptions, prepare
from hf_storyend.training import TrainingRun, train
from hf_storyend.training.checkpoints import CheckpointError, load_checkpoint


@pytest.fixture(scope="module")
def prepared(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("prepared") / "embedded"
    prepare(PrepareOptions(output_dir=directory, vocab_size=300, hidden_size=10, num_layers=2, embedding_size=8))
    return directory


def start_pair(options) -> list:
    port = free_port()
    return [start_run(options, before=Rank(rank, 2, port)) for rank in range(2)]


def steps_told(directory: Path) -> list[int]:
    lines = (directory / "train_log.jsonl").read_text(encoding="utf-8").splitlines()
    return [event["step"] for event in map(json.loads, lines) if "loss" in event]


@pytest.mark.parametrize("victim", [1, pytest.param(0, marks=pytest.mark.slow)])
def test_a_process_dies_the_other_stops_with_a_message_and_both_resume(prepared, tmp_path, victim):
    settings = {"per_device_train_batch_size": 3, "eval_steps": 10_000}
    endless = small_options(prepared, tmp_path / "run", max_steps=10_000, **settings)
    pair = start_pair(endless)
    wait_for(lambda: any((tmp_path / "run").glob("checkpoint-*")), pair[0])
    os.kill(pair[victim].pid, signal.SIGKILL)
    survivor = pair[1 - victim]
    survivor.join(600)
    assert survivor.exitcode == 1, f"It waits for a process that is no more. {output_of(endless)}"
    assert "Error: another process of this run has died" in output_of(endless)
    last = newest_step(tmp_path / "run") + 2
    for process in start_pair(small_options(prepared, tmp_path / "run", max_steps=last, **settings)):
        process.join(600)
        assert process.exitcode == 0, output_of(endless)
    assert steps_told(tmp_path / "run") == list(range(1, last + 1))


def newest_step(directory: Path) -> int:
    return max(int(path.name.split("-")[1]) for path in directory.glob("checkpoint-*"))


def test_the_clock_of_the_wall_does_not_matter(prepared, tmp_path, monkeypatch):
    """It jumps back by a year at every look, as a bad time server might make it."""
    jumps = iter(range(10**6))
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now - 3e7 * next(jumps))
    options = small_options(prepared, tmp_path / "run", max_steps=4, eval_steps=4, max_minutes=1000)
    train(options)
    events = list(map(json.loads, (tmp_path / "run" / "train_log.jsonl").read_text().splitlines()))
    elapsed = [event["elapsed"] for event in events]
    # A jump of the wall clock would be a year.
    assert elapsed == sorted(elapsed) and 0 <= elapsed[-1] < 1e6
    assert steps_told(tmp_path / "run") == [1, 2, 3, 4]
    assert all(event.get("stories_per_second", 1) > 0 for event in events)


@pytest.mark.parametrize("value", [float("nan"), float("-inf")])
@pytest.mark.parametrize("name", ["model", "optimizer"])
def test_a_checkpoint_with_values_that_are_not_finite_is_refused(tmp_path, name, value):
    target = TARGETS["forged checkpoint"]
    target.build(tmp_path)
    path = tmp_path / "checkpoint-3" / f"{name}.safetensors"
    tensors = load_file(path)
    next(iter(tensors.values())).view(-1)[0] = value
    save_file(tensors, path)
    target.mend(tmp_path)
    with pytest.raises(CheckpointError, match="checkpoint-3 has .* not finite"):
        load_checkpoint(path.parent)


@pytest.mark.parametrize("change", [{"identity": None}, {"run": {"steps": 1}}, {"run": None}])
def test_a_checkpoint_that_is_none_of_a_run_is_refused(prepared, tmp_path, change):
    options = small_options(prepared, tmp_path / "run", max_steps=1, eval_steps=1)
    with TrainingRun(options) as run:
        run.state.step = 3
        run.save()
    path = tmp_path / "run" / "checkpoint-3" / "state.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    TARGETS["forged checkpoint"].mend(tmp_path / "run")
    with pytest.raises(CheckpointError, match="checkpoint-3 is not a checkpoint of such a run"):
        TrainingRun(options)
