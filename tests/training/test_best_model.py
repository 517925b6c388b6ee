"""The best model of a run: found again after a crash, and never that of another run or update."""

from pathlib import Path

import pytest
from safetensors.torch import load_file
from training_runs import are_identical, final_weights, small_options

from hf_storyend.manifest import read_manifest, write_manifest
from hf_storyend.training import TrainingRun


def run_to(options, last: int, monkeypatch, values: list[float]) -> TrainingRun:
    """A run whose evaluations have given values, ended after some updates."""
    run = TrainingRun(options)
    evaluate, left = TrainingRun.evaluate, iter(values)

    def graded(self, *arguments):
        evaluation = evaluate(self, *arguments)
        return type(evaluation)({**evaluation.metrics, "perplexity": next(left, 99.0)}, evaluation.endings)

    monkeypatch.setattr(TrainingRun, "evaluate", graded)
    with run:
        for update in run.updates():
            for batch in update.batches():
                run.backward(run.model(**batch))
            run.step()
            if run.state.step == last:
                break
        run.finish()
    monkeypatch.setattr(TrainingRun, "evaluate", evaluate)
    return run


@pytest.fixture
def options(prepared, tmp_path):
    return small_options(prepared, tmp_path / "run", max_steps=6, eval_steps=2, save_steps=2)


def test_the_run_ends_with_the_best_model(options, monkeypatch):
    run_to(options, 6, monkeypatch, [1.0, 2.0, 3.0])
    best = Path(options.output_dir) / "best"
    assert read_manifest(best)["about"]["step"] == 2
    assert are_identical(final_weights(options), load_file(best / "model.safetensors"))


@pytest.mark.parametrize("fault", ["damaged", "of another update", "of another run", "gone"])
def test_the_run_ends_with_its_last_weights_where_the_best_is_not_its_own(options, monkeypatch, caplog, fault):
    best = Path(options.output_dir) / "best"

    def spoil(*arguments) -> None:
        about = read_manifest(best)["about"]
        if fault == "damaged":
            (best / "model.safetensors").write_bytes(b"")
        elif fault == "gone":
            best.rename(best.with_name("elsewhere"))
        else:
            write_manifest(
                best, "best model", **{**about, **({"step": 4} if "update" in fault else {"identity": "x"})}
            )

    finish = TrainingRun.finish
    monkeypatch.setattr(TrainingRun, "finish", lambda self: (spoil(), finish(self))[1])
    caplog.set_level("INFO", logger="hf_storyend")
    run_to(options, 6, monkeypatch, [1.0, 2.0, 3.0])
    assert "The run ends with the last weights instead." in caplog.text
    last = load_file(Path(options.output_dir) / "checkpoint-6" / "model.safetensors")
    assert are_identical(final_weights(options), last)


@pytest.mark.parametrize("suffix", ["old", "partial"])
def test_a_best_model_between_two_renames_is_found_again(options, monkeypatch, suffix):
    run_to(options, 6, monkeypatch, [1.0, 2.0, 3.0])
    best = Path(options.output_dir) / "best"
    before = load_file(best / "model.safetensors")
    best.rename(best.with_name(f".best.0a1b2c3d.{suffix}"))
    with TrainingRun(options):
        pass
    assert are_identical(load_file(best / "model.safetensors"), before)
    assert not list(best.parent.glob(".best.*"))
