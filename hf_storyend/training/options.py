"""Options of training runs, spelt as transformers' Trainer spells them where it has the same."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

from ..options import MAX_PROCESSES, REQUIRED, check_at_least, check_at_most, check_finite_numbers, option
from ..systems import find_system

LOWER_IS_BETTER = ("perplexity", "sampled_perplexity", "repetition", "context_copies", "training_overlap")
HIGHER_IS_BETTER = ("bleu_1", "bleu_2", "bleu_1_cased", "bleu_2_cased", "rouge_l", "distinct_1", "distinct_2")
# Names of earlier versions, for error messages.
RENAMED_OPTIONS = {
    "prepared": "data_dir",
    "checkpoint_every": "save_steps",
    "resume": "resume_from_checkpoint",
    "encoder_loss_share": "encoder_loss_sampling_ratio",
    "num_negatives": "num_sampled_classes",
}
_COUNTS = (
    "per_device_train_batch_size",
    "gradient_accumulation_steps",
    "per_device_eval_batch_size",
    "save_steps",
    "save_total_limit",
    "logging_steps",
    "num_beams",
)
_OPTIONAL_COUNTS = ("max_train_samples", "max_eval_samples", "eval_steps", "early_stopping_patience")


@dataclass(frozen=True)
class TrainingOptions:
    """Options of a training run; the help of each field describes it."""

    output_dir: str = option("trained", "Directory for checkpoints, the log and the trained model.")
    data_dir: str | None = option(
        None, "Directory written by `storyend prepare`; default: the stories that come with the package."
    )

    extra_stories: str | None = option(
        None,
        "File of further training stories, as `storyend prepare` reads them, for instance with endings that a teacher "
        "wrote; vocabulary and knowledge stay those of `data_dir`.",
    )

    system: str = option("ie-msa-ca", "System to train; `storyend systems` lists them.")
    model_name_or_path: str | None = option(
        None, "Trained model to start from, with its sizes; embeddings are matched by token. Default: random weights."
    )
    hidden_size: int | None = option(None, "LSTM hidden size; default: the prepared model's, or 192 without data_dir.")
    num_layers: int | None = option(None, "LSTM layers; default: the prepared model's, or 1 without data_dir.")
    embedding_size: int | None = option(
        None, "Embedding size; default: the prepared model's, or 96. Any other size discards pretrained embeddings."
    )
    dropout: float = option(0.0, "Dropout on embeddings, between layers and before the output projection.")
    tie_word_embeddings: bool = option(False, "Share the weights of the embeddings and the output projection.")
    prediction_vector: Literal["attentional", "state"] | None = option(
        None,
        "Predict words from the attentional vector or, as the paper's equations say, from the state; default: "
        "attentional, or as in the model started from.",
    )
    attend_empty_graphs: bool | None = option(
        None,
        "Let knowledge attention include tokens without triples; default: true, or as in the model started from.",
    )
    output_init: Literal["corpus", "random"] = option(
        "corpus",
        "Initial values of the output projection: biases from token frequencies and weights from the embeddings, or "
        "random.",
    )
    encoder_loss_weight: float = option(1.0, "Weight of the loss on the context's sentences.")
    encoder_loss_sampling_ratio: float = option(
        1.0, "Fraction of the context's tokens, sampled per batch, that the encoder loss is estimated from."
    )
    num_sampled_classes: int | None = option(
        None, "Train with a sampled softmax over this many classes (the paper's code: 512); default: full softmax."
    )

    recipe: Literal["modern", "paper"] = option(
        "modern",
        "`modern`: AdamW, warm-up, cosine decay. `paper`: SGD with momentum 0.9; the learning rate is multiplied by "
        "0.95 after an epoch whose loss exceeds those of the last three.",
    )
    learning_rate: float | None = option(None, "Peak learning rate; default: 0.002 (modern) or 0.1 (paper).")
    warmup_ratio: float | None = option(None, "Fraction of the run used for warm-up; modern only, default: 0.02.")
    weight_decay: float | None = option(None, "Weight decay of matrices; modern only, default: 0.01.")
    max_grad_norm: float = option(5.0, "Gradients are clipped to this norm.")

    num_train_epochs: float = option(20.0, "Epochs to train, unless `max_steps` is set.")
    max_steps: int = option(-1, "Updates to train; -1: as many as the epochs have.")
    max_minutes: float | None = option(None, "Time limit of training; the learning rate schedule follows it.")
    per_device_train_batch_size: int = option(32, "Stories per batch and process.")
    gradient_accumulation_steps: int = option(1, "Batches per process and update.")
    max_train_samples: int | None = option(None, "Train on only the first N stories.")
    seed: int = option(0, "Seed of initial weights, data order, dropout and sampling.")
    full_determinism: bool = option(False, "Use only deterministic GPU kernels: slower, but reproducible weights.")
    mixed_precision: Literal["no", "fp16", "bf16"] | None = option(None, "Default: as in `accelerate config`.")
    torch_compile: bool = option(False, "Compile the model; each batch shape recompiles, minutes on a CPU.")
    torch_compile_mode: Literal["default", "reduce-overhead", "max-autotune"] = option(
        "default", "Mode of `torch_compile`; `reduce-overhead` uses CUDA graphs."
    )
    dataloader_num_workers: int = option(0, "Worker processes that collate batches; 0: the training process.")

    eval_steps: int | None = option(None, "Updates between evaluations; default: one per epoch.")
    max_eval_samples: int | None = option(1000, "Evaluate on only the first N stories; the last evaluation uses all.")
    per_device_eval_batch_size: int = option(128, "Stories per batch and process in evaluation.")
    num_beams: int = option(1, "Beams for generating endings in evaluation; 1: greedy.")
    num_sample_endings: int = option(3, "Generated endings to log at each evaluation.")
    metric_for_best_model: str = option("perplexity", "Evaluation metric that selects the best model.")
    load_best_model_at_end: bool = option(True, "End with the best model instead of the last one.")
    early_stopping_patience: int | None = option(None, "Stop after this many evaluations without improvement.")

    save_steps: int = option(500, "Updates between checkpoints.")
    save_total_limit: int = option(2, "Checkpoints to keep.")
    resume_from_checkpoint: str = option(
        "auto", "`auto`: the latest valid checkpoint in output_dir, if any; `never`; or the path of a checkpoint."
    )
    non_finite: Literal["stop", "skip"] = option(
        "stop", "What to do at a NaN or infinite loss. The batch is saved in either case."
    )

    logging_steps: int = option(10, "Updates between log entries.")
    report_to: str = option("none", "Trackers, comma-separated: mlflow, tensorboard, trackio, wandb.")
    run_name: str | None = option(None, "Name of the run in trackers; default: the name of output_dir.")

    def __post_init__(self) -> None:
        find_system(self.system)
        check_finite_numbers(self)
        check_at_least(self, 1, *_COUNTS)
        check_at_least(self, 1, *_OPTIONAL_COUNTS, optional=True)
        check_at_least(self, 0, "dataloader_num_workers", "num_sample_endings")
        check_at_most(self, dataloader_num_workers=MAX_PROCESSES)
        self._check_length()
        self._check_recipe()
        if self.torch_compile_mode != "default" and not self.torch_compile:
            raise ValueError(f"`torch_compile_mode` is {self.torch_compile_mode!r}, but `torch_compile` is off.")
        if self.metric_for_best_model not in (*LOWER_IS_BETTER, *HIGHER_IS_BETTER):
            names = ", ".join((*LOWER_IS_BETTER, *HIGHER_IS_BETTER))
            raise ValueError(f"`metric_for_best_model` must be one of {names}; got `{self.metric_for_best_model}`.")

    def _check_length(self) -> None:
        if self.max_steps == 0 or self.max_steps < -1:
            raise ValueError(f"`max_steps` must be at least 1, or -1 for whole epochs; got {self.max_steps}.")
        if self.max_steps == -1 and not 0 < self.num_train_epochs < float("inf"):
            raise ValueError(f"`num_train_epochs` must be above 0; got {self.num_train_epochs}.")

    def _check_recipe(self) -> None:
        if self.recipe == "paper":
            for name in ("warmup_ratio", "weight_decay"):
                if getattr(self, name) is not None:
                    raise ValueError(f"`{name}` belongs to the recipe `modern`; the recipe is `paper`.")
        if self.warmup_ratio is not None and not 0 <= self.warmup_ratio < 1:
            raise ValueError(f"`warmup_ratio` must be at least 0 and below 1; got {self.warmup_ratio}.")
        for name in ("learning_rate", "max_grad_norm", "max_minutes"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"`{name}` must be above 0; got {value}.")
        if self.weight_decay is not None and self.weight_decay < 0:
            raise ValueError(f"`weight_decay` must be 0 or more; got {self.weight_decay}.")

    @property
    def trackers(self) -> list[str]:
        """Names of the trackers to report to."""
        names = [name.strip() for name in self.report_to.split(",")]
        return [name for name in names if name and name != "none"]

    def is_better(self, value: float, best: float | None) -> bool:
        """Whether a value of `metric_for_best_model` improves on the best one so far; NaN never does."""
        if best is None:
            return value == value
        return value < best if self.metric_for_best_model in LOWER_IS_BETTER else value > best

    def to_dict(self) -> dict[str, Any]:
        """Return all options as a JSON-serialisable dictionary."""
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class VerifyOptions:
    """Options of `storyend verify`: which directory."""

    directory: str = option(
        REQUIRED,
        "Training run, model, `best`, checkpoint, comparison or prepared data of this program.",
        positional=True,
    )
    json: bool = option(False, "Print JSON.")
