"""Runs resume bit-exactly: after `kill -9`, signals and damaged checkpoints."""

import os
import random
import signal
import time
from pathlib import Path

import pytest
from training_runs import (
    PauseAfter,
    are_identical,
    final_weights,
    finish_run,
    kill,
    last_checkpoint,
    output_of,
    read_log,
    small_options,
    start_run,
    wait_for_pause,
)

from hf_storyend.training import TrainingOptions, checkpoints


@pytest.fixture(scope="module")
def uninterrupted(prepared, tmp_path_factory) -> tuple[TrainingOptions, float]:
    """A run from beginning to end, and the seconds it took."""
    options = small_options(prepared, tmp_path_factory.mktemp("whole") / "run")
    start = time.monotonic()
    assert finish_run(options) == 0, output_of(options)
    return options, time.monotonic() - start


def assert_same_end(options: TrainingOptions, whole: TrainingOptions) -> None:
    assert are_identical(final_weights(options), final_weights(whole))
    for name in ("model", "optimizer"):
        assert are_identical(last_checkpoint(options, name), last_checkpoint(whole, name))


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_killed_at_random_moments(uninterrupted, prepared, tmp_path, seed):
    whole, seconds = uninterrupted
    options = small_options(prepared, tmp_path / "run")
    moments = random.Random(seed)
    for _ in range(4):
        process = start_run(options)
        process.join(moments.uniform(0, seconds))
        if process.exitcode is None:
            assert kill(process) == -signal.SIGKILL
    assert finish_run(options) == 0, output_of(options)
    assert_same_end(options, whole)
    steps = [event["step"] for event in read_log(options) if "loss" in event]
    assert steps == list(range(1, 21)), "The log tells every update once."


class DieIn:
    """Ends the process with SIGKILL at the n-th call of a function of `checkpoints`."""

    def __init__(self, function: str, call: int):
        self.function, self.call = function, call

    def __call__(self) -> None:
        original, counts = getattr(checkpoints, self.function), iter(range(1, 1000))

        def deadly(*arguments, **named):
            if next(counts) == self.call:
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*arguments, **named)

        setattr(checkpoints, self.function, deadly)


@pytest.mark.parametrize(
    "moment",
    [
        DieIn("_save_tensors", 3),  # nothing of the second checkpoint is there
        DieIn("_save_tensors", 4),  # the weights are
        DieIn("write_manifest", 2),  # all but the manifest
        DieIn("remove_directory", 1),  # the third one is complete, the first not yet removed
    ],
    ids=lambda moment: f"{moment.function}-{moment.call}",
)
def test_killed_during_a_save(uninterrupted, prepared, tmp_path, moment):
    whole, _ = uninterrupted
    options = small_options(prepared, tmp_path / "run")
    assert finish_run(options, before=moment) == -signal.SIGKILL
    for path in checkpoints.find_checkpoints(Path(options.output_dir)):
        checkpoints.verify_checkpoint(path)
    assert finish_run(options) == 0, output_of(options)
    assert_same_end(options, whole)
    left = sorted(path.name for path in Path(options.output_dir).iterdir() if path.is_dir())
    assert left == ["best", "checkpoint-18", "checkpoint-20"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_asked_to_stop(uninterrupted, prepared, tmp_path, number):
    whole, _ = uninterrupted
    options = small_options(prepared, tmp_path / "run", save_steps=1000)
    process = start_run(options, before=PauseAfter(4))
    wait_for_pause(options, process)
    assert kill(process, number) == 128 + number
    message = output_of(options)
    assert f"Stopped by {number.name} after 5 updates." in message and "--resume_from_checkpoint auto" in message
    assert "Traceback" not in message
    assert len(list(checkpoints.find_checkpoints(Path(options.output_dir)))) == 1
    assert finish_run(options) == 0, output_of(options)
    assert_same_end(options, whole)


def test_a_damaged_checkpoint_is_skipped(uninterrupted, prepared, tmp_path):
    whole, _ = uninterrupted
    options = small_options(prepared, tmp_path / "run")
    assert finish_run(options, before=DieIn("_save_tensors", 7)) == -signal.SIGKILL
    newest = next(checkpoints.find_checkpoints(Path(options.output_dir)))
    content = bytearray((newest / "optimizer.safetensors").read_bytes())
    content[-3] ^= 4
    (newest / "optimizer.safetensors").write_bytes(content)
    assert finish_run(options) == 0, output_of(options)
    assert "checkpoint-9 is damaged: optimizer.safetensors" in output_of(options)
    assert_same_end(options, whole)


def test_a_finished_run_has_nothing_more_to_do(uninterrupted):
    whole, _ = uninterrupted
    before = final_weights(whole)
    assert finish_run(whole) == 0
    assert are_identical(before, final_weights(whole))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"resume_from_checkpoint": "never"}, "holds the checkpoints of a run"),
        ({"learning_rate": 0.5}, "belongs to another run: `learning_rate` was None, is 0.5"),
        ({"max_train_samples": 12}, "belongs to another run: `data` was"),
        ({"resume_from_checkpoint": "/nowhere"}, "`--resume_from_checkpoint /nowhere` is neither"),
    ],
)
def test_other_options_are_refused(uninterrupted, changes, message):
    whole, _ = uninterrupted
    before = final_weights(whole)
    refused = TrainingOptions(**{**whole.to_dict(), **changes})
    assert finish_run(refused) == 2
    assert message in output_of(refused)
    assert are_identical(before, final_weights(whole))


def test_resuming_from_the_checkpoint_of_another_directory(uninterrupted, prepared, tmp_path):
    whole, _ = uninterrupted
    start = str(Path(whole.output_dir) / "checkpoint-18")
    options = small_options(prepared, tmp_path / "run", resume_from_checkpoint=start)
    assert finish_run(options) == 0, output_of(options)
    for name in ("model", "optimizer"):
        assert are_identical(last_checkpoint(options, name), last_checkpoint(whole, name))
