"""Comparisons in processes of their own: several share a directory, and a killed one goes on."""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from training_runs import PATIENCE

OPTIONS = {
    "max_steps": 12,
    "per_device_train_batch_size": 6,
    "max_train_samples": 46,
    "max_eval_samples": 3,
    "save_steps": 2,
    "num_sample_endings": 1,
}
ROWS = ["seq2seq", "ie", "hlstm.state"]

pytestmark = pytest.mark.slow


@pytest.fixture
def start(data, tmp_path):
    """Starts a comparison of three rows in `tmp_path/out`, logging to a file of its own."""
    (tmp_path / "options.json").write_text(json.dumps(OPTIONS))
    words = ["--systems", ",".join(ROWS), "--data_dir", str(data), "--options_file", str(tmp_path / "options.json")]
    words += ["--output_dir", str(tmp_path / "out"), "--max_stories", "5", "--bootstrap_samples", "10"]

    def run(log: str) -> subprocess.Popen:
        command = [sys.executable, "-m", "hf_storyend", "compare", *words]
        with (tmp_path / log).open("w") as file:
            environment = {**os.environ, "OMP_NUM_THREADS": "1"}
            return subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, env=environment)

    return run


def finished_rows(output: Path) -> list[str]:
    return list(json.loads((output / "comparison.json").read_text())["systems"])


def test_two_processes_train_every_row_once(start, tmp_path):
    processes = [start("one.log"), start("two.log")]
    assert [process.wait(PATIENCE) for process in processes] == [0, 0]
    logs = [(tmp_path / name).read_text() for name in ("one.log", "two.log")]
    trained = [Counter(row for row in ROWS if f"{row}: training.\n" in log) for log in logs]
    assert sum(trained, Counter()) == Counter(ROWS)
    assert finished_rows(tmp_path / "out") == ROWS


def test_a_killed_comparison_goes_on_from_the_last_checkpoint(start, tmp_path):
    process = start("one.log")
    begun = tmp_path / "out" / "systems" / "ie"
    deadline = time.monotonic() + PATIENCE
    while not any(begun.glob("checkpoint-*")):
        assert process.poll() is None and time.monotonic() < deadline, (tmp_path / "one.log").read_text()
        time.sleep(0.02)
    process.kill()
    process.wait(PATIENCE)
    assert start("two.log").wait(PATIENCE) == 0
    log = (tmp_path / "two.log").read_text()
    assert "seq2seq: training." not in log and "Resumed from checkpoint-" in log
    assert finished_rows(tmp_path / "out") == ROWS
