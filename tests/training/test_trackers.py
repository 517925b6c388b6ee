"""Trackers: what a run reports can be read back with each tracker's own reader. None of them uses the network."""

import os
from pathlib import Path

import pytest
from training_runs import finish_run, output_of, small_options


def report(tracker: str, prepared, tmp_path, **environment: str) -> None:
    """Train two updates in a process of its own; the trackers' files go to `tmp_path`."""
    options = small_options(prepared, tmp_path / "run", max_steps=2, report_to=tracker, run_name="a-run")
    assert finish_run(options, before=Surroundings(str(tmp_path), environment)) == 0, output_of(options)


class Surroundings:
    """Working directory and environment of a run."""

    def __init__(self, directory: str, environment: dict[str, str]):
        self.directory, self.environment = directory, environment

    def __call__(self) -> None:
        os.chdir(self.directory)
        os.environ.update(self.environment)


@pytest.mark.slow
def test_tensorboard(prepared, tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    report("tensorboard", prepared, tmp_path)
    (events,) = {path.parent for path in (tmp_path / "run" / "logs").rglob("events.out.*") if _has_scalars(path)}
    reader = accumulator.EventAccumulator(str(events))
    reader.Reload()
    assert [event.step for event in reader.Scalars("ending_loss")] == [1, 2]
    assert "eval_perplexity" in reader.Tags()["scalars"]


def _has_scalars(path: Path) -> bool:
    return b"eval_perplexity" in path.read_bytes()


@pytest.mark.slow
def test_mlflow(prepared, tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    store = {"MLFLOW_TRACKING_URI": f"file://{tmp_path}/mlruns", "MLFLOW_ALLOW_FILE_STORE": "true"}
    report("mlflow", prepared, tmp_path, **store)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    client = mlflow.MlflowClient(tracking_uri=store["MLFLOW_TRACKING_URI"])
    (run,) = client.search_runs([entry.experiment_id for entry in client.search_experiments()])
    assert [metric.step for metric in client.get_metric_history(run.info.run_id, "ending_loss")] == [1, 2]


@pytest.mark.slow
def test_wandb_offline(prepared, tmp_path):
    pytest.importorskip("wandb")
    report("wandb", prepared, tmp_path, WANDB_MODE="offline", WANDB_DIR=str(tmp_path))
    (written,) = tmp_path.rglob("run-*.wandb")
    content = written.read_bytes()
    assert b"ending_loss" in content and b"eval_perplexity" in content and b"a-run" in content


@pytest.mark.slow
def test_trackio(prepared, tmp_path):
    pytest.importorskip("trackio")
    report("trackio", prepared, tmp_path, TRACKIO_DIR=str(tmp_path / "trackio"), TRACKIO_SHOW="0")
    content = b"".join(path.read_bytes() for path in (tmp_path / "trackio").rglob("*.db*"))
    assert b"ending_loss" in content and b"eval_perplexity" in content and b"a-run" in content
