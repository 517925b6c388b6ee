"""Two runs never write into one output directory; the second one is told who has it."""

import os
import signal

import pytest
from training_runs import PauseAfter, finish_run, kill, output_of, small_options, start_run, wait_for_pause

from hf_storyend.training import TrainingRun


def test_a_second_run_is_refused_by_name(prepared, tmp_path):
    options = small_options(prepared, tmp_path / "run", max_steps=4, save_steps=1)
    process = start_run(options, before=PauseAfter(2))
    wait_for_pause(options, process)
    with pytest.raises(ValueError, match=rf"in use by another run \(process {process.pid} of .* on .* since \d{{4}}-"):
        TrainingRun(options)
    before = sorted(path.name for path in (tmp_path / "run").iterdir())
    assert finish_run(options) == 2 and f"process {process.pid}" in output_of(options)
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == before, "The refused run changes nothing."
    assert kill(process) == -signal.SIGKILL
    assert finish_run(options) == 0, "The lock ends with its process."


def test_the_lock_lasts_from_start_to_end(prepared, tmp_path):
    options = small_options(prepared, tmp_path / "run", max_steps=2, eval_steps=2)
    with TrainingRun(options) as run:
        with pytest.raises(ValueError, match=f"process {os.getpid()}"):
            TrainingRun(options)
        (tmp_path / "other name").symlink_to(tmp_path / "run")
        with pytest.raises(ValueError, match=f"process {os.getpid()}"):
            TrainingRun(small_options(prepared, tmp_path / "other name"))
        run.save()
        with pytest.raises(ValueError, match=f"process {os.getpid()}"):
            TrainingRun(options)
    with TrainingRun(options):
        pass


def test_a_run_that_can_not_start_gives_the_lock_back(prepared, tmp_path):
    options = small_options(prepared, tmp_path / "run", max_steps=2, eval_steps=2)
    with TrainingRun(options) as run:
        run.save()
    with pytest.raises(ValueError, match="belongs to another run"):
        TrainingRun(small_options(prepared, tmp_path / "run", seed=1))
    with TrainingRun(options):
        pass


def test_a_link_in_place_of_the_lock_is_refused(prepared, tmp_path):
    """Some versions of filelock would empty the file that it leads to."""
    (tmp_path / "run").mkdir()
    (tmp_path / "thesis.tex").write_text("years of work")
    (tmp_path / "run" / ".run.lock").symlink_to(tmp_path / "thesis.tex")
    with pytest.raises(ValueError, match=r"\.run\.lock is a link, which no run makes: delete it"):
        TrainingRun(small_options(prepared, tmp_path / "run"))
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_a_run_that_was_killed_at_its_start_can_start_again(prepared, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".run.lock").touch()
    (tmp_path / "run" / ".run.json").write_text("{")
    with TrainingRun(small_options(prepared, tmp_path / "run")):
        pass
