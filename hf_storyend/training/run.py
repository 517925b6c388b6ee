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

import logging
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from ..data.batching import StoryCollator
from ..evaluation.options import EvaluationOptions
from ..evaluation.results import Evaluation
from ..evaluation.run import evaluate_model
from ..modeling import EndingGenerationOutput, IncrementalEncoderForEndingGeneration
from .batching import Update, UpdateLoader
from .checkpoints import (
    BEST,
    Checkpoint,
    CheckpointError,
    RunState,
    check_identity,
    find_resume_checkpoint,
    identity_digest,
    load_checkpoint,
    run_identity,
    save_checkpoint,
    write_options,
)
from .data import load_training_data
from .distributed import (
    broadcast_from_main,
    build_accelerator,
    end_training,
    full_optimizer_state,
    full_weights,
    load_full_optimizer_state,
    load_full_weights,
    start_trackers,
    unsharded,
    write_on_main_process,
)
from .initial_model import build_model, model_settings
from .options import TrainingOptions
from .outputs import describe_run, problem_with_best_model, without_progress_bars, write_best_model, write_results
from .progress import Progress, TrainingLog, peak_memory_mb
from .recipes import build_recipe
from .run_lock import RunLock
from .stopping import MAX_SKIPPED_IN_A_ROW, NonFiniteLoss, StopSignals, TrainingInterrupted, dump_non_finite_batch

logger = logging.getLogger(__name__)


def train(
    options: TrainingOptions | None = None, after_update: Callable[[TrainingRun], None] | None = None
) -> Evaluation:
    """
    Train a model, from the start or from the latest checkpoint, and save it in `output_dir`.

    Args:
        options: Data, system, sizes and schedule; default: the package's stories and the paper's best system.
        after_update: Called after every update, to follow the run.

    Returns:
        The final evaluation on the validation stories.
    """
    with TrainingRun(options or TrainingOptions()) as run:
        for update in run.updates():
            for batch in update.batches():
                run.backward(run.model(**batch))
            run.step()
            if after_update is not None:
                after_update(run)
        return run.finish()


class TrainingRun:
    """
    Data, model, optimizer, log and checkpoints of a run, at its start or where it was interrupted.

    Args:
        options: Options of the run.
        clock: Returns seconds; measures the time for `max_minutes` and the throughput.

    Attributes:
        model: The model to call, as Accelerate prepared it, compiled if the options say so.
        module: The same, not compiled.
        accelerator: The `accelerate.Accelerator`.
        optimizer: The optimizer, as Accelerate prepared it.
        data: Tokenizer and stories.
        state: Progress of the run.
    """

    def __init__(self, options: TrainingOptions, *, clock: Callable[[], float] = time.monotonic):
        self.options = options
        self.directory = Path(options.output_dir)
        self.accelerator = build_accelerator(options)
        self.data = load_training_data(options)
        self.recipe = build_recipe(options)
        with without_progress_bars():
            model = build_model(options, self.data)
        # Counted before the model is sharded.
        self.num_parameters = model.num_parameters()
        self.module, self.optimizer = self.accelerator.prepare(model, self.recipe.optimizer(model))
        # Evaluation and saving use the uncompiled model: other shapes would recompile it.
        self.model = self.module
        if options.torch_compile:
            self.model = torch.compile(self.module, dynamic=True, mode=options.torch_compile_mode)
        self.loader = UpdateLoader(
            self.data.tokenised["train"],
            StoryCollator(self.data.tokenizer),
            self.accelerator,
            per_device_batch_size=options.per_device_train_batch_size,
            accumulation_steps=options.gradient_accumulation_steps,
            seed=options.seed,
            num_workers=options.dataloader_num_workers,
        )
        self.state = RunState()
        self.lock = RunLock(self.directory)
        self.log = TrainingLog(self.directory, writes=self.accelerator.is_main_process)
        self.identity = {
            **run_identity(options, self.accelerator, self.data.identity(), self.data.digests()),
            "model": model_settings(model.config),
        }
        self.signals = StopSignals()
        self._clock = clock
        self._last_time = clock()
        self._losses: list[torch.Tensor] = []
        self._update: Update | None = None
        # The last evaluation, of the weights as they are.
        self._evaluation: Evaluation | None = None
        try:
            self._resume()
        except BaseException:
            self.lock.release()
            raise

    @property
    def total_steps(self) -> int:
        """Updates of the whole run."""
        if self.options.max_steps > 0:
            return self.options.max_steps
        return math.ceil(self.options.num_train_epochs * self.loader.updates_per_epoch)

    @property
    def done(self) -> float:
        """Fraction of the run that is done, by updates or by time, whichever is larger."""
        fraction = self.state.step / self.total_steps
        if self.options.max_minutes is not None:
            fraction = max(fraction, self.state.elapsed / (60 * self.options.max_minutes))
        return min(fraction, 1.0)

    @property
    def is_over(self) -> bool:
        """Whether all updates are made, the time limit is reached, or early stopping applies."""
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
        self.lock.release()
        # After an error the other processes may be elsewhere: waiting for them could hang.
        if error[0] is None or issubclass(error[0], TrainingInterrupted):
            end_training(self.accelerator)

    def updates(self) -> Iterator[Update]:
        """Yield the remaining updates; call `backward` for each of their batches, then `step`."""
        self._last_time = self._clock()
        while not self.is_over:
            for update in self.loader.updates(self.module, self.state.epoch, self.state.updates_in_epoch):
                self._begin(update)
                yield update
                if self._update is not None:
                    raise RuntimeError("Call `run.step()` at the end of every update.")
                if self.is_over:
                    break

    def backward(self, output: EndingGenerationOutput) -> None:
        """Backpropagate the loss of a batch."""
        self._losses.append(torch.stack((output.loss, output.ending_loss)).detach().float())
        self.accelerator.backward(output.loss)

    def step(self) -> None:
        """
        Update the weights, then log, evaluate and save as due.

        Raises:
            TrainingInterrupted: If any process received a stop signal; the checkpoint is written.
            NonFiniteLoss: If the loss is not finite and `non_finite` is `stop`.
        """
        if self._update is None or len(self._losses) != len(self._update.tensors):
            raise RuntimeError("Call `run.backward(...)` for every batch of an update, then `run.step()` once.")
        loss, ending_loss, signal_number, norm = self._gather_numbers()
        learning_rate = self.recipe.learning_rate_at(self.done)
        gradient_norm = self._optimizer_step(self._update, loss, norm, learning_rate)
        num_stories = self._update.num_stories
        self._update, self._losses = None, []
        epoch_ended = self._advance(loss if gradient_norm is not None else None)
        self.progress.add(num_stories, self.state.elapsed, loss, ending_loss, gradient_norm)
        if self.state.step % self.options.logging_steps == 0 or self.done >= 1:
            self._log_means(learning_rate)
        if self._is_evaluation_due(epoch_ended):
            self._save_if_best(self.evaluate(self.options.max_eval_samples))
        if signal_number or self.is_over or self.state.step % self.options.save_steps == 0:
            self.save()
        if signal_number:
            raise TrainingInterrupted(signal_number, self.state.step, str(self.directory))
        # Evaluations and checkpoints do not count as training time.
        self._last_time = self._clock()

    def evaluate(self, max_stories: int | None = None) -> Evaluation:
        """Evaluate on the validation stories; log the metrics and some endings."""
        stories, tokenised = self.data.validation
        options = EvaluationOptions(
            batch_size=self.options.per_device_eval_batch_size * self.accelerator.num_processes,
            generation={"num_beams": self.options.num_beams},
            max_stories=max_stories,
        )
        with unsharded(self.module, self.accelerator) as model, self.accelerator.autocast():
            evaluation = evaluate_model(
                model, self.data.tokenizer, stories, tokenised, accelerator=self.accelerator, options=options
            )
        metrics = {f"eval_{name}": value for name, value in evaluation.metrics.items()}
        self._log_event({"eval_num_stories": evaluation.num_stories, **metrics})
        shown = ("perplexity", "sampled_perplexity", "bleu_1", "bleu_2")
        numbers = ", ".join(f"{name} {evaluation.metrics[name]:.2f}" for name in shown)
        stories_used = f"{evaluation.num_stories:,} of {len(stories):,} validation stories"
        self.progress.info(f"step {self.state.step}, {stories_used}: {numbers}")
        for ending in evaluation.endings[: self.options.num_sample_endings]:
            self.progress.info(f"  {' '.join(ending['context'])}\n    -> {ending['ending']}")
        self._evaluation = evaluation
        return evaluation

    def save(self) -> None:
        """Write a checkpoint."""
        scaler = self.accelerator.scaler
        checkpoint = Checkpoint(
            self.state.step,
            full_weights(self.module),
            full_optimizer_state(self.module, self.optimizer),
            {
                "run": self.state.to_dict(),
                "recipe": self.recipe.state_dict(),
                "scaler": scaler.state_dict() if scaler is not None else {},
                "identity": self.identity,
            },
        )
        write_on_main_process(
            self.accelerator,
            lambda: save_checkpoint(self.directory, checkpoint, self.options.save_total_limit),
            f"The checkpoint of step {self.state.step} in {self.directory}",
        )

    def finish(self) -> Evaluation:
        """Evaluate on all validation stories; save model, tokenizer, metrics and model card."""
        if self.options.load_best_model_at_end and self.state.best_step not in (None, self.state.step):
            self._load_best()
        evaluation = self._evaluation
        if evaluation is None or evaluation.num_stories < len(self.data.validation[0]):
            evaluation = self.evaluate()
        weights = full_weights(self.module)
        model = self.accelerator.unwrap_model(self.module)
        run = describe_run(self.options, self.state, self.log, self.accelerator, self.data, self.num_parameters)
        write_on_main_process(
            self.accelerator,
            lambda: write_results(
                self.directory,
                model,
                weights,
                self.data.tokenizer,
                evaluation,
                run,
                self.log,
                self.state,
                identity_digest(self.identity),
            ),
            f"The model in {self.directory}",
        )
        self.progress.info(f"The model is in {self.directory}.")
        return evaluation

    def _resume(self) -> None:
        """Restore the state of the checkpoint to resume from, if there is one."""
        path = find_resume_checkpoint(self.options, self.accelerator, self.lock)
        if path is not None:
            checkpoint = load_checkpoint(path)
            try:
                self._restore(path, checkpoint)
            except (LookupError, TypeError, AttributeError, RuntimeError) as error:
                raise CheckpointError(f"{path} is not a checkpoint of such a run: {error!r}") from error
        write_options(self.options, self.accelerator)
        self.log.truncate(self.state.step if path is not None else -1)

    def _restore(self, path: Path, checkpoint: Checkpoint) -> None:
        changes = check_identity(path, checkpoint.state["identity"], self.identity)
        load_full_weights(self.module, checkpoint.weights)
        load_full_optimizer_state(self.module, self.optimizer, checkpoint.optimizer)
        self.recipe.load_state_dict(checkpoint.state["recipe"])
        if self.accelerator.scaler is not None:
            self.accelerator.scaler.load_state_dict(checkpoint.state["scaler"])
        self.state = RunState(**checkpoint.state["run"])
        if 0 < self.options.max_steps < self.state.step:
            changes.append(
                f"{path} has made {self.state.step} updates, more than `max_steps` ({self.options.max_steps}): "
                "nothing is left to train."
            )
        if self.accelerator.is_main_process:
            for change in changes:
                logger.warning(change)
            logger.info("Resumed from %s, after %d of %d updates.", path.name, self.state.step, self.total_steps)

    def _begin(self, update: Update) -> None:
        self._update, self._losses, self._evaluation = update, [], None
        self.module.train()
        self.optimizer.zero_grad()
        # Dropout depends on the update alone, so a resumed run samples what an uninterrupted one would.
        place = self.state.step * self.accelerator.num_processes + self.accelerator.process_index
        torch.manual_seed((self.options.seed * 1_000_003 + place) % 2**63)

    def _gather_numbers(self) -> tuple[float, float, int, float]:
        """
        Clip the gradients. Returns loss and ending loss of the update over all processes, the signal that any of them
        received and the gradient norm: by one copy, as a GPU is waited for at each.
        """
        norm = self.accelerator.clip_grad_norm_(self.module.parameters(), self.options.max_grad_norm)
        norm = norm.full_tensor() if hasattr(norm, "full_tensor") else norm
        losses = torch.stack(self._losses).sum(dim=0)
        signal_number = losses.new_tensor([self.signals.received])
        own = torch.cat((losses, signal_number, norm.detach().to(losses).reshape(1)))
        numbers = self.accelerator.gather(own.unsqueeze(0)).cpu()
        loss, ending_loss, _, _ = numbers.mean(dim=0).tolist()
        return loss, ending_loss, int(numbers[:, 2].max()), float(numbers[self.accelerator.process_index, 3])

    def _optimizer_step(self, update: Update, loss: float, norm: float, learning_rate: float) -> float | None:
        """Update the weights. Returns the gradient norm; None if the update is skipped."""
        # With fp16, infinite gradients are how the scaler finds its scale.
        scaled = self.accelerator.scaler is not None
        if math.isfinite(loss) and (scaled or math.isfinite(norm)):
            for group in self.optimizer.param_groups:
                group["lr"] = learning_rate
            self.optimizer.step()
            self.state.skipped_in_a_row = 0
            return norm
        self._skip_non_finite(update, loss, norm)
        return None

    def _skip_non_finite(self, update: Update, loss: float, norm: float) -> None:
        path = dump_non_finite_batch(self.directory, self.state.step, self.accelerator.process_index, update)
        self.state.skipped_in_a_row += 1
        problem = f"Update {self.state.step} has loss {loss} and gradient norm {norm}; its batch is in {path}."
        if self.options.non_finite == "stop":
            raise NonFiniteLoss(
                f"{problem} The weights are unchanged. `--non_finite skip` would skip it and continue."
            )
        if self.state.skipped_in_a_row >= MAX_SKIPPED_IN_A_ROW:
            raise NonFiniteLoss(f"{problem} It is the last of {MAX_SKIPPED_IN_A_ROW} in a row: the run has diverged.")
        self.progress.info(f"{problem} It is skipped.")

    def _advance(self, loss: float | None) -> bool:
        """Count the update; returns whether an epoch ended with it."""
        state = self.state
        state.step += 1
        state.updates_in_epoch += 1
        state.epoch_loss += loss or 0.0
        self._add_time()
        if state.updates_in_epoch < self.loader.updates_per_epoch:
            return False
        self.recipe.on_epoch_end(state.epoch_loss / state.updates_in_epoch)
        state.epoch, state.updates_in_epoch, state.epoch_loss = state.epoch + 1, 0, 0.0
        return True

    def _add_time(self) -> None:
        now = self._clock()
        self.state.elapsed += now - self._last_time
        self._last_time = now
        if self.options.max_minutes is not None:
            # One clock decides for all processes, or their learning rates would differ.
            self.state.elapsed = broadcast_from_main(self.accelerator, self.state.elapsed)

    def _is_evaluation_due(self, epoch_ended: bool) -> bool:
        if self.done >= 1:
            return True
        if self.options.eval_steps is None:
            return epoch_ended
        return self.state.step % self.options.eval_steps == 0

    def _save_if_best(self, evaluation: Evaluation) -> None:
        value = evaluation.metrics[self.options.metric_for_best_model]
        if not self.options.is_better(value, self.state.best_metric):
            self.state.evaluations_without_progress += 1
            if self.is_over and self.done < 1:
                count = self.state.evaluations_without_progress
                self.progress.info(f"Early stopping: no improvement in {count} evaluations.")
            return
        self.state.best_metric, self.state.best_step = value, self.state.step
        self.state.evaluations_without_progress = 0
        weights, model = full_weights(self.module), self.accelerator.unwrap_model(self.module)

        write_on_main_process(
            self.accelerator,
            lambda: write_best_model(
                self.directory, model, weights, self.data.tokenizer, self.state, identity_digest(self.identity)
            ),
            f"The best model in {self.directory}",
        )

    def _load_best(self) -> None:
        problem = problem_with_best_model(self.directory, self.state, identity_digest(self.identity))
        if problem is not None:
            self.progress.info(f"{problem}. The run ends with the last weights instead.")
            return
        with without_progress_bars():
            best = IncrementalEncoderForEndingGeneration.from_pretrained(self.directory / BEST)
        load_full_weights(self.module, best.state_dict())
        self._evaluation = None
        self.progress.info(f"Loaded the best weights, of step {self.state.best_step}.")

    def _log_means(self, learning_rate: float) -> None:
        numbers = self.progress.take_means()
        self.progress.report(self.state.step, self.done, numbers)
        memory = peak_memory_mb(self.accelerator.device)
        measured = {} if memory is None else {"peak_memory_mb": memory}
        self._log_event({**numbers, "learning_rate": learning_rate, **measured})

    def _log_event(self, numbers: dict[str, Any]) -> None:
        epoch = self.state.epoch + self.state.updates_in_epoch / self.loader.updates_per_epoch
        elapsed = round(self.state.elapsed, 1)
        self.log.append({"step": self.state.step, "epoch": round(epoch, 4), "elapsed": elapsed, **numbers})
        self.accelerator.log(numbers, step=self.state.step)
