"""The log file, running means and progress messages."""

import sys

import pytest
import torch

from hf_storyend.training.checkpoints import RunState
from hf_storyend.training.progress import Progress, TrainingLog, peak_memory_mb, perplexity


def test_the_log_is_truncated_to_a_step_and_cut_lines_are_dropped(tmp_path):
    log = TrainingLog(tmp_path, writes=True)
    for step in (1, 2, 3):
        log.append({"step": step, "loss": 1.0 / step})
    with log.path.open("a") as file:
        file.write('{"step": 4, "lo')
    other = TrainingLog(tmp_path, writes=True)
    other.truncate(2)
    assert other.events == [{"step": 1, "loss": 1.0}, {"step": 2, "loss": 0.5}]
    assert log.path.read_text() == '{"step": 1, "loss": 1.0}\n{"step": 2, "loss": 0.5}\n'


def test_only_the_main_process_writes_the_log(tmp_path):
    log = TrainingLog(tmp_path, writes=False)
    log.append({"step": 1})
    log.truncate(0)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("is_main", [True, False])
def test_means_and_messages(caplog, is_main):
    caplog.set_level("INFO", logger="hf_storyend")
    progress = Progress(10, RunState(elapsed=5.0), 0.0, is_main)
    progress.add(8, 7.0, loss=2.0, ending_loss=1.0, gradient_norm=0.5)
    progress.add(8, 9.0, loss=4.0, ending_loss=3.0, gradient_norm=1.5)
    progress.add(8, 11.0, loss=float("nan"), ending_loss=float("nan"), gradient_norm=None)
    means = progress.take_means()
    expected = {"loss": 3.0, "ending_loss": 2.0, "gradient_norm": 1.0, "stories_per_second": 4.0}
    assert means == {**expected, "perplexity": pytest.approx(7.389, abs=1e-3)}
    progress.report(3, 0.5, means)
    progress.close()
    line = "step 3/10: ending loss 2.000 (perplexity 7.4), total loss 3.000, 4.0 stories/s, 00:06 left"
    assert [record.getMessage() for record in caplog.records] == [line] * is_main
    assert progress.take_means() == {"stories_per_second": 0.0}


def test_perplexity_does_not_overflow():
    assert perplexity(0.0) == 1.0 and perplexity(1000.0) == float("inf")


def test_peak_memory_is_unknown_where_the_system_does_not_report_it(monkeypatch):
    assert peak_memory_mb(torch.device("cpu")) > 10
    monkeypatch.setitem(sys.modules, "resource", None)
    assert peak_memory_mb(torch.device("cpu")) is None
