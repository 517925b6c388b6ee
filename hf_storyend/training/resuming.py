"""Where a run starts: from nothing, or from a checkpoint that fits it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from accelerate import Accelerator

from .acceleration import from_main_process, main_process_writes
from .checkpoints import find_checkpoints, newest_good_checkpoint, remove_leftovers
from .options import TrainingOptions

OPTIONS = "training_options.json"
# Options that a resumed run may not change: with another value the weights would mean something else.
_FIXED = (
    "system",
    "model_name_or_path",
    "hidden_size",
    "num_layers",
    "embedding_size",
    "dropout",
    "tie_word_embeddings",
    "attend_empty_graphs",
    "encoder_loss_weight",
    "encoder_loss_share",
    "num_negatives",
    "recipe",
    "learning_rate",
    "warmup_ratio",
    "weight_decay",
    "max_grad_norm",
    "gradient_accumulation_steps",
    "seed",
    "metric_for_best_model",
)


def run_identity(options: TrainingOptions, accelerator: Accelerator, data: dict[str, Any]) -> dict[str, Any]:
    """What makes two runs the same one."""
    return {
        **{name: getattr(options, name) for name in _FIXED},
        "stories in a batch": options.per_device_train_batch_size * accelerator.num_processes,
        "precision": str(accelerator.mixed_precision),
        "data": data,
    }


def choose_start(options: TrainingOptions, accelerator: Accelerator) -> Path | None:
    """Make the output directory ready and find the checkpoint to go on from, the same one in all processes."""
    directory = Path(options.output_dir)
    main_process_writes(accelerator, lambda: directory.mkdir(parents=True, exist_ok=True), str(directory))
    if options.resume not in ("auto", "never"):
        return _named_checkpoint(Path(options.resume))
    start, problem = None, None
    if accelerator.is_main_process:
        remove_leftovers(directory)
        try:
            start = _find_start(directory, options.resume)
        except ValueError as error:
            problem = str(error)
    start, problem = from_main_process(accelerator, (start, problem))
    if problem is not None:
        raise ValueError(problem)
    return start


def check_identity(checkpoint: Path, was: dict[str, Any], now: dict[str, Any]) -> None:
    """Raise unless a checkpoint belongs to this run."""
    different = [f"`{name}` was {was.get(name)!r}, is {now[name]!r}" for name in now if was.get(name) != now[name]]
    if different:
        raise ValueError(
            f"{checkpoint} belongs to another run: {'; '.join(different)}. "
            "Use the same options, or another `--output_dir`."
        )


def write_options(options: TrainingOptions, accelerator: Accelerator) -> None:
    """Leave the options in the output directory, which also marks it as a run's."""
    path = Path(options.output_dir) / OPTIONS
    text = json.dumps(options.to_dict(), indent=1) + "\n"
    main_process_writes(accelerator, lambda: path.write_text(text, encoding="utf-8"), str(path))


def _find_start(directory: Path, resume: str) -> Path | None:
    found = list(find_checkpoints(directory))
    if resume == "never" and found:
        raise ValueError(
            f"{directory} holds the checkpoints of a run. Continue it with `--resume auto`, or use another directory."
        )
    if not found:
        if any(directory.iterdir()) and not (directory / OPTIONS).is_file():
            raise ValueError(f"{directory} is not empty and not a training run: choose another `--output_dir`.")
        return None
    start = newest_good_checkpoint(directory)
    if start is None:
        raise ValueError(f"No checkpoint in {directory} is whole: choose another `--output_dir`, or mend them.")
    return start


def _named_checkpoint(path: Path) -> Path:
    if not path.is_dir():
        raise ValueError(f"`--resume {path}` is neither `auto` nor `never` nor a checkpoint directory.")
    return path
