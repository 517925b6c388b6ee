"""All that decides a training run: one dataclass, from the command line, a YAML or JSON file, or Python."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import yaml
from transformers import HfArgumentParser

from ..systems import find_system


def _option(default: Any, help: str) -> Any:
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True)
class TrainingOptions:
    """Options of a training run, spelled as in transformers where it has them. The help of each says what it does."""

    output_dir: str = _option("trained", "Directory for checkpoints, log and, at the end, the model.")
    prepared: str | None = _option(
        None, "Directory made by `storyend prepare`. Without it: the stories that come with the package."
    )

    system: str = _option("ie-msa-ca", "What to train; `storyend systems` lists them.")
    model_name_or_path: str | None = _option(
        None, "Start from this trained model's weights, with its sizes; words go by name. Default: start new."
    )
    hidden_size: int | None = _option(None, "Size of LSTM states; the prepared model's, or 192 for embedded stories.")
    num_layers: int | None = _option(None, "LSTM layers; the prepared model's, or 1 for embedded stories.")
    embedding_size: int | None = _option(
        None, "Size of word vectors; the prepared model's, or 96. Another one means random vectors."
    )
    dropout: float = _option(0.0, "Dropout on word vectors, between layers and before the vocabulary.")
    tie_word_embeddings: bool = _option(False, "Word vectors as weights of the vocabulary projection.")
    attend_empty_graphs: bool | None = _option(
        None,
        "Let knowledge attention go to words without triples, too; default: yes, or like the model started from.",
    )
    encoder_loss_weight: float = _option(1.0, "Weight of the loss on the sentences of the context.")
    encoder_loss_share: float = _option(
        1.0, "Share of the context's words, drawn anew each time, that this loss is computed on and scaled up from."
    )
    num_negatives: int | None = _option(
        None,
        "Words, drawn anew each time, that losses are made of beside the target (the authors: 512); default: all.",
    )

    recipe: Literal["modern", "paper"] = _option(
        "modern",
        "`modern`: AdamW, warm-up, cosine. `paper`: momentum 0.9, rate x 0.95 after an epoch worse than the last 3.",
    )
    learning_rate: float | None = _option(None, "Highest learning rate; modern: 0.002, paper: 0.1.")
    warmup_ratio: float | None = _option(None, "Share of the run in which the rate rises; modern: 0.02.")
    weight_decay: float | None = _option(None, "Decay of weight matrices; modern: 0.01.")
    max_grad_norm: float = _option(5.0, "Gradients are clipped to this norm.")

    num_train_epochs: float = _option(20.0, "Times the stories are read, unless `max_steps` says otherwise.")
    max_steps: int = _option(-1, "Updates to make; -1: as many as the epochs have.")
    max_minutes: float | None = _option(None, "Train no longer than this; the learning rate falls with the time.")
    per_device_train_batch_size: int = _option(32, "Stories in a batch of one process.")
    gradient_accumulation_steps: int = _option(1, "Batches of each process in an update.")
    max_train_samples: int | None = _option(None, "Train on the first stories only.")
    seed: int = _option(0, "Of weights, order and dropout.")
    full_determinism: bool = _option(False, "Only deterministic GPU kernels: slower, the same weights every time.")
    mixed_precision: Literal["no", "fp16", "bf16"] | None = _option(None, "Default: what `accelerate config` says.")
    torch_compile: bool = _option(False, "Compile the model, anew for each shape of a batch: minutes on a CPU.")
    torch_compile_mode: Literal["default", "reduce-overhead", "max-autotune"] = _option(
        "default", "Of `torch_compile`; `reduce-overhead` records CUDA graphs on a GPU."
    )
    dataloader_num_workers: int = _option(0, "Processes that make batches; 0: the training process itself.")

    eval_steps: int | None = _option(None, "Evaluate every so many updates; default: at the end of each epoch.")
    max_eval_samples: int | None = _option(1000, "Stories of these evaluations; the last one takes all.")
    per_device_eval_batch_size: int = _option(128, "Stories in a batch of evaluation.")
    num_beams: int = _option(1, "Beams when endings are written; 1: greedy.")
    num_sample_endings: int = _option(3, "Endings to show at each evaluation.")
    metric_for_best_model: str = _option("perplexity", "Metric of the evaluation that decides which model is best.")
    load_best_model_at_end: bool = _option(True, "End with the best model instead of the last one.")
    early_stopping_patience: int | None = _option(None, "Stop after so many evaluations without progress.")

    checkpoint_every: int = _option(500, "Updates between checkpoints.")
    save_total_limit: int = _option(2, "Checkpoints to keep.")
    resume: str = _option("auto", "`auto`: go on from the newest good checkpoint, if any; `never`; or a checkpoint.")
    non_finite: Literal["stop", "skip"] = _option(
        "stop", "What a NaN or infinite loss does. The batch is saved in either case."
    )

    logging_steps: int = _option(10, "Updates between lines of the log.")
    report_to: str = _option("none", "Trackers by name, with commas between: tensorboard, trackio, wandb.")
    run_name: str | None = _option(None, "Name of the run in trackers; default: that of the output directory.")

    def __post_init__(self) -> None:
        find_system(self.system)
        self._check_counts()
        if self.recipe == "paper":
            for name in ("warmup_ratio", "weight_decay"):
                if getattr(self, name) is not None:
                    raise ValueError(f"`{name}` belongs to the recipe `modern`; the recipe is `paper`.")
        if self.torch_compile_mode != "default" and not self.torch_compile:
            raise ValueError(f"`torch_compile_mode` is {self.torch_compile_mode!r}, but `torch_compile` is off.")
        if self.max_steps == 0 or self.max_steps < -1:
            raise ValueError(f"`max_steps` must be at least 1, or -1 for whole epochs; got {self.max_steps}.")
        if self.max_steps == -1 and not 0 < self.num_train_epochs < float("inf"):
            raise ValueError(f"`num_train_epochs` must be above 0; got {self.num_train_epochs}.")
        if self.warmup_ratio is not None and not 0 <= self.warmup_ratio < 1:
            raise ValueError(f"`warmup_ratio` must be at least 0 and below 1; got {self.warmup_ratio}.")
        for name in ("learning_rate", "max_grad_norm", "max_minutes"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"`{name}` must be above 0; got {value}.")

    def _check_counts(self) -> None:
        counts = (
            "per_device_train_batch_size",
            "gradient_accumulation_steps",
            "per_device_eval_batch_size",
            "checkpoint_every",
            "save_total_limit",
            "logging_steps",
            "num_beams",
        )
        optional = ("max_train_samples", "max_eval_samples", "eval_steps", "early_stopping_patience")
        for name in (*counts, *optional):
            value = getattr(self, name)
            if (value is not None or name in counts) and (not isinstance(value, int) or value < 1):
                raise ValueError(f"`{name}` must be a whole number of at least 1; got {value!r}.")
        for name in ("dataloader_num_workers", "num_sample_endings"):
            if getattr(self, name) < 0:
                raise ValueError(f"`{name}` must be at least 0; got {getattr(self, name)}.")

    @property
    def trackers(self) -> list[str]:
        """Names of the trackers to report to."""
        names = [name.strip() for name in self.report_to.split(",")]
        return [name for name in names if name and name != "none"]

    def to_dict(self) -> dict[str, Any]:
        """All options, as JSON can hold them."""
        return dataclasses.asdict(self)


def parse_options(arguments: Sequence[str] | None = None, description: str | None = None) -> TrainingOptions:
    """
    Options from a command line (that of the program unless given). Its first word may be a YAML or JSON file with
    options by name; what the command line says comes before what the file says.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    parser = HfArgumentParser(
        TrainingOptions,  # type: ignore[arg-type]
        description=description,
        usage="%(prog)s [options.yaml] [--option value ...]",
    )
    if words and words[0].endswith((".yaml", ".yml", ".json")):
        try:
            words = [*_words_of_file(Path(words[0])), *words[1:]]
        except (ValueError, OSError) as error:
            parser.error(str(error))
    try:
        return parser.parse_args_into_dataclasses(words, look_for_args_file=False)[0]
    except ValueError as error:
        return parser.error(str(error))


# PyYAML makes numbers and dates of text without asking whether it can.
_UNREADABLE = (yaml.YAMLError, ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError)


def _named_once(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    """A mapping of pairs; of an option that is there twice nobody knows which value is meant."""
    repeated = [name for name, times in Counter(name for name, _ in pairs).items() if times > 1]
    if repeated:
        raise ValueError(f"`{repeated[0]}` is there twice.")
    return dict(pairs)


class _OptionsLoader(yaml.SafeLoader):
    """YAML's safe part, without names that are there twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        _named_once([(self.construct_object(key, deep=True), None) for key, _ in node.value])
        return super().construct_mapping(node, deep)


def _words_of_file(path: Path) -> list[str]:
    """The options of a file, as words of a command line."""
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".json":
            values = json.loads(text, object_pairs_hook=_named_once)
        else:
            values = yaml.load(text, _OptionsLoader)
    except _UNREADABLE as error:
        raise ValueError(f"{path} can't be read: {error}") from error
    if not isinstance(values, dict):
        raise ValueError(f"{path} must hold options by name, such as `max_steps: 1000`.")
    known = {item.name for item in dataclasses.fields(TrainingOptions)}
    unknown = [str(name) for name in values if name not in known]
    if unknown:
        raise ValueError(f"{path} has options that do not exist: {', '.join(unknown)}. `--help` lists those that do.")
    words = []
    for name, value in values.items():
        if isinstance(value, (list, dict)):
            # Without the value: a few lines of YAML can stand for gigabytes of it.
            raise ValueError(f"{path}: `{name}` must be one value; got a {type(value).__name__}.")
        # One word, so that a value that starts with a dash is not taken for an option.
        words += [f"--{name}={value}"] if value is not None else []
    return words
