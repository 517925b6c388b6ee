"""Training runs: losses, schedules, best models, limits, and what can go wrong."""

import itertools
import json
import resource
import signal

import pytest
import torch
from datasets import DatasetDict
from safetensors.torch import load_file
from training_runs import are_identical, final_weights, finish_run, output_of, read_log, small_options
from transformers import AutoModel, AutoTokenizer

from hf_storyend.systems import SYSTEMS
from hf_storyend.training import NonFiniteLoss, TrainingOptions, TrainingRun, train
from hf_storyend.training import run as training_run


@pytest.mark.filterwarnings("ignore:.*no supported trackers")
def test_a_missing_tracker_is_an_error(prepared, tmp_path):
    with pytest.raises(ValueError, match="tracker `aim`, which is not installed"):
        TrainingRun(small_options(prepared, tmp_path / "run", report_to="aim"))


def test_accumulated_batches_equal_one_large_batch(prepared, tmp_path):
    """The loss is divided by the words of the whole update, so four batches of 6 are one of 24."""
    common = {"dropout": 0.0, "max_steps": 2, "max_train_samples": 48}
    parts = small_options(prepared, tmp_path / "parts", gradient_accumulation_steps=4, **common)
    whole = small_options(prepared, tmp_path / "whole", per_device_train_batch_size=24, **common)
    for options in (parts, whole):
        train(options)
    totals = [[event["loss"] for event in read_log(options) if "loss" in event] for options in (parts, whole)]
    # Which stories come together depends on the size of a batch; all of them are read in both runs.
    assert sum(totals[0]) == pytest.approx(sum(totals[1]), rel=0.02)


def test_an_update_of_several_batches_has_the_gradient_of_all(prepared, tmp_path):
    options = small_options(prepared, tmp_path / "run", gradient_accumulation_steps=3, dropout=0.0)
    with TrainingRun(options) as run:
        update = next(run.updates())
        for batch in update.batches():
            run.backward(run.model(**batch))
        summed = {name: parameter.grad.clone() for name, parameter in run.model.named_parameters()}
        run.optimizer.zero_grad()
        rows = [row for batch in update.rows for row in batch]
        features = [run.data.tokenised["train"][row] for row in rows]
        run.model(**run.loader.collator(features)).loss.backward()
        for name, parameter in run.model.named_parameters():
            torch.testing.assert_close(parameter.grad, summed[name], rtol=1e-4, atol=1e-6)


def test_bfloat16_trains(prepared, tmp_path):
    options = small_options(prepared, tmp_path / "run", mixed_precision="bf16")
    assert finish_run(options) == 0, output_of(options)
    assert all(weight.dtype == torch.float32 for weight in final_weights(options).values())
    losses = [event["ending_loss"] for event in read_log(options) if "loss" in event]
    assert sum(losses[-8:]) < sum(losses[:8])


@pytest.mark.slow
def test_workers_collate_the_same_batches(finished, prepared, tmp_path):
    options = small_options(prepared, tmp_path / "run", dataloader_num_workers=2)
    assert finish_run(options) == 0, output_of(options)
    assert are_identical(final_weights(options), final_weights(finished))


def test_full_determinism(finished, prepared, tmp_path):
    options = small_options(prepared, tmp_path / "run", full_determinism=True)
    assert finish_run(options) == 0, output_of(options)
    assert are_identical(final_weights(options), final_weights(finished))


def test_compile_mode_is_passed_on(prepared, tmp_path, monkeypatch):
    modes = []
    monkeypatch.setattr(torch, "compile", lambda model, *, dynamic, mode: modes.append((dynamic, mode)) or model)
    changes = {"torch_compile": True, "torch_compile_mode": "reduce-overhead"}
    with TrainingRun(small_options(prepared, tmp_path / "run", **changes)) as run:
        assert run.model is run.module and modes == [(True, "reduce-overhead")]


@pytest.mark.slow
def test_a_compiled_model_trains(finished, prepared, tmp_path):
    """Two updates have two shapes, each of which recompiles: minutes."""
    changes = {"dropout": 0.0, "max_steps": 2, "eval_steps": 2, "logging_steps": 1, "num_layers": 1}
    options = small_options(prepared, tmp_path / "run", torch_compile=True, **changes)
    plain = small_options(prepared, tmp_path / "plain", **changes)
    train(options)
    train(plain)
    losses = [[event["loss"] for event in read_log(each) if "loss" in event] for each in (options, plain)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    assert final_weights(options).keys() == final_weights(plain).keys()


@pytest.mark.parametrize("num_sampled_classes", [None, 30])
def test_the_paper_s_recipe_trains(prepared, tmp_path, num_sampled_classes):
    """Also with a sampled softmax, as in the authors' code; evaluation uses the full softmax."""
    changes = {"recipe": "paper", "max_steps": 60, "eval_steps": 30, "logging_steps": 20}
    options = small_options(prepared, tmp_path / "run", num_sampled_classes=num_sampled_classes, **changes)
    train(options)
    losses = [event["loss"] for event in read_log(options) if "loss" in event]
    perplexities = [event["eval_perplexity"] for event in read_log(options) if "eval_perplexity" in event]
    assert losses[-1] < losses[0] and perplexities[1] < perplexities[0]
    model = AutoModel.from_pretrained(options.output_dir)
    assert model.config.num_sampled_classes == num_sampled_classes


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_trains_evaluates_and_loads(prepared, tmp_path, system):
    options = small_options(prepared, tmp_path / "run", system=system, max_steps=2, save_steps=9)
    evaluation = train(options)
    assert evaluation.num_stories == 33
    tokenizer = AutoTokenizer.from_pretrained(options.output_dir)
    model = AutoModel.from_pretrained(options.output_dir)
    assert model.config.copy == SYSTEMS[system].copy == bool(tokenizer.num_copy_slots)
    assert model.config.tail_pointer == SYSTEMS[system].tail_pointer == tokenizer.tail_pointer
    inputs = tokenizer("Tom made a cake. It burnt.", return_tensors="pt")
    assert model.generate(**inputs, max_new_tokens=3).shape[0] == 1


def test_runs_with_other_seeds_are_evaluated_with_the_same_samples(prepared, tmp_path, monkeypatch):
    """Sampled perplexities are comparable only over the same classes."""
    seen, really_evaluate = [], training_run.evaluate_model
    monkeypatch.setattr(
        training_run,
        "evaluate_model",
        lambda *inputs, **settings: seen.append(settings["options"]) or really_evaluate(*inputs, **settings),
    )
    for seed in (1, 2):
        with TrainingRun(small_options(prepared, tmp_path / str(seed), seed=seed)) as run:
            run.evaluate(max_stories=2)
    assert seen[0] == seen[1]


def test_the_best_model_is_loaded_at_the_end(prepared, tmp_path):
    """With a diverging learning rate, the best evaluation is an early one."""
    options = small_options(
        prepared, tmp_path / "run", learning_rate=3.0, warmup_ratio=0.9, max_steps=24, eval_steps=2, dropout=0.0
    )
    train(options)
    state = json.loads((tmp_path / "run" / "trainer_state.json").read_text())
    evaluations = {e["step"]: e["eval_perplexity"] for e in read_log(options) if e.get("eval_num_stories") == 4}
    best = min(evaluations, key=evaluations.__getitem__)
    assert state["best_global_step"] == best < 24
    assert are_identical(final_weights(options), load_file(tmp_path / "run" / "best" / "model.safetensors"))


def test_early_stopping(prepared, tmp_path):
    options = small_options(
        prepared,
        tmp_path / "run",
        learning_rate=3.0,
        warmup_ratio=0.0,
        max_steps=60,
        eval_steps=1,
        early_stopping_patience=3,
    )
    train(options)
    state = json.loads((tmp_path / "run" / "trainer_state.json").read_text())
    assert state["global_step"] < 60
    evaluations = [e["eval_perplexity"] for e in read_log(options) if e.get("eval_num_stories") == 4]
    assert min(evaluations[-3:]) >= min(evaluations[:-3])


def test_a_limit_in_minutes(prepared, tmp_path, caplog):
    """An update takes 3 seconds of a clock that does not look at the time."""
    caplog.set_level("INFO", logger="hf_storyend")
    options = small_options(prepared, tmp_path / "run", max_minutes=1, max_steps=100_000, eval_steps=100_000)
    seconds = itertools.count(step=3)
    train_with(TrainingRun(options, clock=lambda: next(seconds)))
    updates = [event for event in read_log(options) if "loss" in event]
    assert [event["elapsed"] for event in updates] == list(range(3, 61, 3))
    assert [event["stories_per_second"] for event in updates[:2]] == [2.0, 2.0]
    rates = [event["learning_rate"] for event in updates]
    assert max(rates) == rates[1] and rates[-1] < 1e-4, "The schedule follows the time."
    # The time left is that of the limit, not of a hundred thousand updates.
    assert "2.0 stories/s, 00:57 left" in caplog.text and "2.0 stories/s, 00:03 left" in caplog.text


def train_with(run: TrainingRun, nan_at: int | None = None) -> TrainingRun:
    """The loop of `train`; the loss of the update `nan_at` is not a number."""
    with run:
        for update in run.updates():
            for batch in update.batches():
                output = run.model(**batch)
                if run.state.step == nan_at:
                    output.loss = output.loss * float("nan")
                run.backward(output)
            run.step()
        run.finish()
    return run


def test_a_non_finite_loss_stops_the_run_and_the_batch_is_saved(prepared, tmp_path):
    options = small_options(prepared, tmp_path / "run")
    with pytest.raises(NonFiniteLoss, match=r"Update 4 has loss nan .*/step-4-process-0"):
        train_with(TrainingRun(options), nan_at=4)
    saved = load_file(tmp_path / "run" / "non_finite" / "step-4-process-0.safetensors")
    rows = json.loads((tmp_path / "run" / "non_finite" / "step-4-process-0.json").read_text())["rows"]
    stories = DatasetDict.load_from_disk(prepared / "tokenised")["train"].select(rows[0])
    assert saved["0/input_ids"][:, 0, 0].tolist() == [story[0][0] for story in stories["input_ids"]]
    assert torch.isfinite(load_file(tmp_path / "run" / "checkpoint-3" / "model.safetensors")["lm_head.weight"]).all()


def test_a_non_finite_loss_can_be_skipped(prepared, tmp_path):
    options = small_options(prepared, tmp_path / "run", non_finite="skip")
    run = train_with(TrainingRun(options), nan_at=4)
    assert run.state.step == 20
    assert [event["step"] for event in read_log(options) if "loss" in event] == [*range(1, 5), *range(6, 21)]
    assert all(torch.isfinite(weight).all() for weight in final_weights(options).values())


def limit_file_size() -> None:
    """As on a full disk, writing more than so many bytes fails; SIGXFSZ would else end the process."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))


def test_a_full_disk_leaves_the_last_good_checkpoint(prepared, tmp_path):
    options = small_options(prepared, tmp_path / "run", max_steps=3)
    assert finish_run(options) == 0
    before = load_file(tmp_path / "run" / "checkpoint-3" / "model.safetensors")
    longer = small_options(prepared, tmp_path / "run", max_steps=9)
    assert finish_run(longer, before=limit_file_size) == 2
    message = output_of(longer)
    assert "The checkpoint of step 6" in message and "could not be written" in message and "Traceback" not in message
    assert are_identical(before, load_file(tmp_path / "run" / "checkpoint-3" / "model.safetensors"))
    assert [path.name for path in (tmp_path / "run").glob(".*")] == [".run.lock"]
    assert finish_run(longer) == 0


def test_an_unwritable_directory_is_refused(prepared, tmp_path):
    (tmp_path / "file").write_text("")
    options = small_options(prepared, tmp_path / "file")
    assert finish_run(options) == 2
    assert "could not be written" in output_of(options) and "Traceback" not in output_of(options)


def test_a_directory_with_other_files_is_left_alone(prepared, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "novel.txt").write_text("mine")
    with pytest.raises(ValueError, match="not empty and not a training run"):
        TrainingRun(small_options(prepared, tmp_path / "run"))


def test_unprepared_data_are_refused(tmp_path):
    with pytest.raises(ValueError, match="has no `config.json`: make it with `storyend prepare --output"):
        TrainingRun(small_options(tmp_path, tmp_path / "run"))


def test_the_loop_must_be_complete(prepared, tmp_path):
    with TrainingRun(small_options(prepared, tmp_path / "run")) as run:
        for update in run.updates():
            with pytest.raises(RuntimeError, match="for every batch"):
                run.step()
            for batch in update.batches():
                run.backward(run.model(**batch))
            break
    with (
        TrainingRun(small_options(prepared, tmp_path / "other")) as run,
        pytest.raises(RuntimeError, match="run.step"),
    ):
        for _ in run.updates():
            pass


def test_prepared_embeddings_are_kept(prepared, tmp_path):
    with TrainingRun(small_options(prepared, tmp_path / "run")) as run:
        vectors = load_file(prepared / "model.safetensors")["encoder.embed_tokens.weight"]
        assert torch.equal(run.model.get_input_embeddings().weight, vectors)
    with TrainingRun(small_options(prepared, tmp_path / "other", embedding_size=4, hidden_size=6)) as run:
        assert run.model.config.embedding_size == 4 and run.model.config.hidden_size == 6


def test_without_prepared_data_the_embedded_stories_are_used(tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    options = TrainingOptions(output_dir=str(tmp_path / "run"), max_steps=1, max_eval_samples=2)
    with TrainingRun(options) as run:
        assert len(run.data.tokenised["train"]) == 594 and run.model.config.hidden_size == 192
