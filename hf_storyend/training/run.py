"""
A training run: everything around the loop.

    with TrainingRun(options) as run:
        for update in run.updates():
            for batch in update.batches():
                run.backward(run.model(**batch))
            run.step()
        run.finish()
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from ..data.batching import StoryCollator
from ..evaluation import Evaluation, EvaluationOptions, evaluate_model
from ..files import atomic_directory
from ..modeling import EndingGenerationOutput, IncrementalEncoderForEndingGeneration
from .checkpoints import (
    Checkpoint,
    CheckpointError,
    RunState,
    check_identity,
    choose_start,
    load_checkpoint,
    run_identity,
    save_checkpoint,
    write_options,
)
from .data import build_model, load_training_data
from .distributed import (
    build_accelerator,
    end_training,
    from_main_process,
    load_optimizer_state,
    load_weights,
    main_process_writes,
    start_trackers,
    usable_weights,
    whole_optimizer_state,
    whole_weights,
)
from .interruption import MAX_SKIPPED_IN_A_ROW, NonFiniteLoss, StopSignals, TrainingInterrupted, save_offenders
from .monitoring import (
    History,
    Progress,
    check_metric,
    describe_run,
    is_better,
    peak_memory_mb,
    save_model,
    write_results,
)
from .optimization import Update, UpdatePlan, build_recipe
from .options import TrainingOptions

BEST = "best"


class TrainingRun:
    """
    Data, model, optimiser and log of a run, from wherever it was stopped.

    Attributes:
        model: The model to call, as the Accelerator prepared it, compiled if the options say so.
        module: The same, not compiled.
        accelerator: The `accelerate.Accelerator`.
        optimizer: The optimiser, as the Accelerator prepared it.
        data: Tokenizer and stories.
        state: How far the run has come.
    """

    def __init__(self, options: TrainingOptions):
        check_metric(options.metric_for_best_model)
        self.options = options
        self.directory = Path(options.output_dir)
        self.accelerator = build_accelerator(options)
        self.data = load_training_data(options)
        self.recipe = build_recipe(options)
        model = build_model(options, self.data)
        # Counted before the model is cut into shards.
        self.num_parameters = model.num_parameters()
        self.module, self.optimizer = self.accelerator.prepare(model, self.recipe.optimizer(model))
        # Evaluation and saving go past the compiled model: other shapes would compile it anew.
        self.model = self.module
        if options.torch_compile:
            self.model = torch.compile(self.module, dynamic=True, mode=options.torch_compile_mode)
        self.plan = UpdatePlan(
            self.data.tokenised["train"],
            StoryCollator(self.data.tokenizer),
            self.accelerator,
            per_device_batch_size=options.per_device_train_batch_size,
            accumulation=options.gradient_accumulation_steps,
            seed=options.seed,
            num_workers=options.dataloader_num_workers,
        )
        self.state = RunState()
        self.history = History(self.directory, writes=self.accelerator.is_main_process)
        self.identity = run_identity(options, self.accelerator, self.data.identity())
        self.signals = StopSignals()
        self._losses: list[torch.Tensor] = []
        self._update: Update | None = None
        self._start()

    @property
    def total_steps(self) -> int:
        """Updates of the whole run."""
        if self.options.max_steps > 0:
            return self.options.max_steps
        return math.ceil(self.options.num_train_epochs * self.plan.updates_per_epoch)

    @property
    def done(self) -> float:
        """Share of the run that is done, by updates or by time, whichever is more."""
        share = self.state.step / self.total_steps
        if self.options.max_minutes is not None:
            share = max(share, self.state.elapsed / (60 * self.options.max_minutes))
        return min(share, 1.0)

    @property
    def is_over(self) -> bool:
        """Whether all updates were made, the time is up, or patience is."""
        patience = self.options.early_stopping_patience
        return self.done >= 1 or (patience is not None and self.state.evaluations_without_progress >= patience)

    def __enter__(self) -> TrainingRun:
        self.signals.__enter__()
        start_trackers(self.options, self.accelerator)
        total_steps = self.total_steps if self.options.max_minutes is None else None
        self.progress = Progress(total_steps, self.state, self.done, self.accelerator.is_main_process)
        return self

    def __exit__(self, *error: Any) -> None:
        self.progress.close()
        self.signals.__exit__()
        # After an error other processes may be elsewhere, and would be waited for.
        if error[0] is None or issubclass(error[0], TrainingInterrupted):
            end_training(self.accelerator)

    def updates(self) -> Iterator[Update]:
        """What each remaining update reads. After the losses of its batches, call `step`."""
        self._clock = time.monotonic()
        while not self.is_over:
            for update in self.plan.updates(self.module, self.state.epoch, self.state.updates_in_epoch):
                self._begin(update)
                yield update
                if self._update is not None:
                    raise RuntimeError("Call `run.step()` at the end of every update.")
                if self.is_over:
                    break

    def backward(self, output: EndingGenerationOutput) -> None:
        """Add a batch's gradients."""
        losses = torch.stack((output.loss, output.ending_loss)).detach().float()
        self._losses.append(losses)
        self.accelerator.backward(output.loss)

    def step(self) -> None:
        """Update the weights, then log, evaluate and save whatever is due. May raise `TrainingInterrupted`."""
        if self._update is None or len(self._losses) != len(self._update.tensors):
            raise RuntimeError("Call `run.backward(...)` for every batch of an update, then `run.step()` once.")
        loss, ending_loss, signal_number = self._share_numbers()
        learning_rate = self.recipe.rate(self.done)
        gradient_norm = self._descend(self._update, loss, learning_rate)
        num_stories = self._update.num_stories
        self._update, self._losses = None, []
        epoch_ended = self._advance(loss if gradient_norm is not None else None)
        self.progress.add(num_stories, self.state.elapsed, loss, ending_loss, gradient_norm)
        if self.state.step % self.options.logging_steps == 0 or self.done >= 1:
            self._log(learning_rate)
        if self._is_evaluation_due(epoch_ended):
            self._keep_if_best(self.evaluate(self.options.max_eval_samples))
        if signal_number or self.is_over or self.state.step % self.options.checkpoint_every == 0:
            self.save()
        if signal_number:
            raise TrainingInterrupted(signal_number, self.state.step, str(self.directory))
        self._clock = time.monotonic()

    def evaluate(self, max_stories: int | None = None) -> Evaluation:
        """Evaluate on the validation stories, note the numbers in the log and show some endings."""
        stories, tokenised = self.data.validation
        options = EvaluationOptions(
            batch_size=self.options.per_device_eval_batch_size * self.accelerator.num_processes,
            generation={"num_beams": self.options.num_beams},
            max_stories=max_stories,
        )
        with usable_weights(self.module, self.accelerator) as bare, self.accelerator.autocast():
            evaluation = evaluate_model(
                bare, self.data.tokenizer, stories, tokenised, accelerator=self.accelerator, options=options
            )
        numbers = {f"eval_{name}": value for name, value in evaluation.metrics.items()}
        self._note({"eval_num_stories": evaluation.num_stories, **numbers})
        shown = ("perplexity", "sampled_perplexity", "bleu_1", "bleu_2")
        self.progress.say(
            f"step {self.state.step}: " + ", ".join(f"{name} {evaluation.metrics[name]:.2f}" for name in shown)
        )
        for ending in evaluation.endings[: self.options.num_sample_endings]:
            self.progress.say(f"  {' '.join(ending['context'])}\n    -> {ending['ending']}")
        return evaluation

    def save(self) -> None:
        """Write a checkpoint."""
        scaler = self.accelerator.scaler
        checkpoint = Checkpoint(
            self.state.step,
            whole_weights(self.module),
            whole_optimizer_state(self.module, self.optimizer),
            {
                "run": self.state.to_dict(),
                "recipe": self.recipe.state_dict(),
                "scaler": scaler.state_dict() if scaler is not None else {},
                "identity": self.identity,
            },
        )
        main_process_writes(
            self.accelerator,
            lambda: save_checkpoint(self.directory, checkpoint, self.options.save_total_limit),
            f"The checkpoint of step {self.state.step} in {self.directory}",
        )

    def finish(self) -> Evaluation:
        """Evaluate on all validation stories and leave the model with all its papers in the output directory."""
        if self.options.load_best_model_at_end and self.state.best_step not in (None, self.state.step):
            self._load_best()
        last = self.evaluate()
        weights = whole_weights(self.module)
        bare = self.accelerator.unwrap_model(self.module)
        run = describe_run(
            self.options, self.state, self.history, self.accelerator, self.data.name, self.num_parameters
        )
        main_process_writes(
            self.accelerator,
            lambda: write_results(
                self.directory, bare, weights, self.data.tokenizer, last, run, self.history, self.state
            ),
            f"The model in {self.directory}",
        )
        self.progress.say(f"The model is in {self.directory}.")
        return last

    def _start(self) -> None:
        start = choose_start(self.options, self.accelerator)
        if start is not None:
            checkpoint = load_checkpoint(start)
            try:
                self._restore(start, checkpoint)
            except (LookupError, TypeError, AttributeError, RuntimeError) as error:
                raise CheckpointError(f"{start} is not a checkpoint of such a run: {error!r}") from error
        self.history.go_back(self.state.step if start is not None else -1)
        write_options(self.options, self.accelerator)

    def _restore(self, start: Path, checkpoint: Checkpoint) -> None:
        check_identity(start, checkpoint.state["identity"], self.identity)
        load_weights(self.module, checkpoint.weights)
        load_optimizer_state(self.module, self.optimizer, checkpoint.optimizer)
        self.recipe.load_state_dict(checkpoint.state["recipe"])
        if self.accelerator.scaler is not None:
            self.accelerator.scaler.load_state_dict(checkpoint.state["scaler"])
        self.state = RunState(**checkpoint.state["run"])

    def _begin(self, update: Update) -> None:
        self._update, self._losses = update, []
        self.module.train()
        self.optimizer.zero_grad()
        # Dropout depends on the update alone, so a resumed run draws what an uninterrupted one would.
        place = self.state.step * self.accelerator.num_processes + self.accelerator.process_index
        torch.manual_seed((self.options.seed * 1_000_003 + place) % 2**63)

    def _share_numbers(self) -> tuple[float, float, int]:
        """Loss and ending loss of the update over all processes, and the signal that any of them received."""
        losses = torch.stack(self._losses).sum(dim=0)
        signal_number = losses.new_tensor([self.signals.received])
        numbers = self.accelerator.gather(torch.cat((losses, signal_number)).unsqueeze(0))
        loss, ending_loss, _ = numbers.mean(dim=0).tolist()
        return loss, ending_loss, int(numbers[:, 2].max())

    def _descend(self, update: Update, loss: float, learning_rate: float) -> float | None:
        """Take the optimiser's step; None if it was skipped because the loss or the gradients were not finite."""
        norm = self.accelerator.clip_grad_norm_(self.module.parameters(), self.options.max_grad_norm)
        norm = float(norm.full_tensor() if hasattr(norm, "full_tensor") else norm)
        # With fp16 the scaler looks for infinite gradients itself: they are how it finds its scale.
        scaled = self.accelerator.scaler is not None
        if math.isfinite(loss) and (scaled or math.isfinite(norm)):
            for group in self.optimizer.param_groups:
                group["lr"] = learning_rate
            self.optimizer.step()
            self.state.skipped_in_a_row = 0
            return norm
        self._refuse(update, loss, norm)
        return None

    def _refuse(self, update: Update, loss: float, norm: float) -> None:
        path = save_offenders(self.directory, self.state.step, self.accelerator.process_index, update)
        self.state.skipped_in_a_row += 1
        what = f"Update {self.state.step} has loss {loss} and gradient norm {norm}; its batch is in {path}."
        if self.options.non_finite == "stop":
            raise NonFiniteLoss(f"{what} Nothing was changed by it. `--non_finite skip` would leave it out and go on.")
        if self.state.skipped_in_a_row >= MAX_SKIPPED_IN_A_ROW:
            raise NonFiniteLoss(f"{what} It is the last of {MAX_SKIPPED_IN_A_ROW} in a row: the run is broken.")
        self.progress.say(f"{what} It was skipped.")

    def _advance(self, loss: float | None) -> bool:
        """Count the update; true if an epoch ended with it."""
        state = self.state
        state.step += 1
        state.updates_in_epoch += 1
        state.epoch_loss += loss or 0.0
        self._add_time()
        if state.updates_in_epoch < self.plan.updates_per_epoch:
            return False
        self.recipe.epoch_ended(state.epoch_loss / state.updates_in_epoch)
        state.epoch, state.updates_in_epoch, state.epoch_loss = state.epoch + 1, 0, 0.0
        return True

    def _add_time(self) -> None:
        now = time.monotonic()
        self.state.elapsed += now - self._clock
        self._clock = now
        if self.options.max_minutes is not None:
            # One clock decides for all processes, or their learning rates would differ.
            self.state.elapsed = from_main_process(self.accelerator, self.state.elapsed)

    def _is_evaluation_due(self, epoch_ended: bool) -> bool:
        if self.done >= 1:
            return True
        if self.options.eval_steps is None:
            return epoch_ended
        return self.state.step % self.options.eval_steps == 0

    def _keep_if_best(self, evaluation: Evaluation) -> None:
        name = self.options.metric_for_best_model
        value = evaluation.metrics[name]
        if not is_better(name, value, self.state.best_metric):
            self.state.evaluations_without_progress += 1
            if self.is_over and self.done < 1:
                self.progress.say(
                    f"No progress in {self.state.evaluations_without_progress} evaluations: that is all."
                )
            return
        self.state.best_metric, self.state.best_step = value, self.state.step
        self.state.evaluations_without_progress = 0
        weights = whole_weights(self.module)
        main_process_writes(self.accelerator, lambda: self._write_best(weights), f"The best model in {self.directory}")

    def _write_best(self, weights: dict[str, torch.Tensor]) -> None:
        with atomic_directory(self.directory / BEST) as folder:
            save_model(folder, self.accelerator.unwrap_model(self.module), weights, self.data.tokenizer)

    def _load_best(self) -> None:
        best = IncrementalEncoderForEndingGeneration.from_pretrained(self.directory / BEST)
        load_weights(self.module, best.state_dict())
        self.progress.say(f"Back to the best weights, those of step {self.state.best_step}.")

    def _log(self, learning_rate: float) -> None:
        numbers = self.progress.take_means()
        self.progress.tell(self.state.step, self.done, numbers)
        memory = peak_memory_mb(self.accelerator.device)
        self._note({**numbers, "learning_rate": learning_rate, "peak_memory_mb": memory})

    def _note(self, numbers: dict[str, Any]) -> None:
        epoch = self.state.epoch + self.state.updates_in_epoch / self.plan.updates_per_epoch
        elapsed = round(self.state.elapsed, 1)
        self.history.add({"step": self.state.step, "epoch": round(epoch, 4), "elapsed": elapsed, **numbers})
        self.accelerator.log(numbers, step=self.state.step)


def train(options: TrainingOptions) -> Evaluation:
    """Train from beginning, or from where it was stopped, to end; `examples/train.py` shows the same loop."""
    with TrainingRun(options) as run:
        for update in run.updates():
            for batch in update.batches():
                run.backward(run.model(**batch))
            run.step()
        return run.finish()
