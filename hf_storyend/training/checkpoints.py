"""Where a run starts: from nothing, or from a checkpoint that fits it."""

from __future__ import annotations

import json
import re
import shutil
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from ..files import atomic_directory, file_digest
from .distributed import from_main_process, main_process_writes
from .options import TrainingOptions


@dataclass
class RunState:
    """
    Args:
        step: Updates made (or skipped) so far.
        epoch, updates_in_epoch: Whole epochs done, and updates of the one under way.
        elapsed: Seconds of training, those before a resume included, those of evaluations not.
        epoch_loss: Sum of the losses of the epoch under way.
        best_metric, best_step: The best evaluation so far, and when it was.
        evaluations_without_progress: Evaluations since then.
        skipped_in_a_row: Updates left out because their loss was not finite.
    """

    step: int = 0
    epoch: int = 0
    updates_in_epoch: int = 0
    elapsed: float = 0.0
    epoch_loss: float = 0.0
    best_metric: float | None = None
    best_step: int | None = None
    evaluations_without_progress: int = 0
    skipped_in_a_row: int = 0

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


MANIFEST = "manifest.json"
_NAME = re.compile(r"checkpoint-(\d+)")


class CheckpointError(ValueError):
    """A checkpoint that can't be used, and why."""


@dataclass
class Checkpoint:
    """All that a run needs to go on as if it had never stopped."""

    step: int
    weights: dict[str, torch.Tensor]
    optimizer: dict[str, torch.Tensor]
    state: dict[str, Any]


def save_checkpoint(directory: Path, checkpoint: Checkpoint, keep: int) -> Path:
    """Write a checkpoint into `directory` and remove all but the newest `keep`."""
    target = directory / f"checkpoint-{checkpoint.step}"
    with atomic_directory(target) as folder:
        _save_tensors(checkpoint.weights, folder / "model.safetensors")
        _save_tensors(checkpoint.optimizer, folder / "optimizer.safetensors")
        _write_json(folder / "state.json", {"step": checkpoint.step, **checkpoint.state})
        digests = {path.name: file_digest(path) for path in sorted(folder.iterdir())}
        _write_json(folder / MANIFEST, {"files": digests})
    for old in list(find_checkpoints(directory))[keep:]:
        remove_directory(old)
    return target


def load_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint, every file checked against the manifest."""
    verify_checkpoint(path)
    try:
        state = json.loads((path / "state.json").read_text(encoding="utf-8"))
        weights, optimizer = (load_file(path / f"{name}.safetensors") for name in ("model", "optimizer"))
    except (OSError, ValueError, RecursionError, SafetensorError) as error:
        raise CheckpointError(f"{path} can't be read: {error}") from error
    if not isinstance(state, dict) or type(state.get("step")) is not int:
        raise CheckpointError(f"{path / 'state.json'} does not say how far the run had come.")
    for tensors in (weights, optimizer):
        for name, tensor in tensors.items():
            if not bool(tensor.isfinite().all()):
                raise CheckpointError(f"{path} has `{name}` with values that are not finite.")
    return Checkpoint(state.pop("step"), weights, optimizer, state)


def verify_checkpoint(path: Path) -> None:
    """Raise a [`CheckpointError`] unless the directory is what was written."""
    try:
        digests = json.loads((path / MANIFEST).read_text(encoding="utf-8"))["files"]
        needed = {"model.safetensors", "optimizer.safetensors", "state.json"}
        if not isinstance(digests, dict) or set(digests) != needed:
            raise CheckpointError(f"{path / MANIFEST} does not list the files of a checkpoint.")
        wrong = [name for name, digest in digests.items() if file_digest(path / name) != digest]
    except CheckpointError:
        raise
    except (OSError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is not a complete checkpoint: {error}") from error
    if wrong:
        raise CheckpointError(f"{path} is damaged: {', '.join(wrong)} differ from what was written.")


def find_checkpoints(directory: Path) -> Iterator[Path]:
    """Checkpoints of a run, the newest first."""
    found = [(int(match[1]), path) for path in directory.glob("checkpoint-*") if (match := _NAME.fullmatch(path.name))]
    yield from (path for _, path in sorted(found, reverse=True))


def newest_good_checkpoint(directory: Path) -> Path | None:
    """The newest checkpoint that is whole; damaged ones are passed over with a warning."""
    for path in find_checkpoints(directory):
        try:
            verify_checkpoint(path)
            return path
        except CheckpointError as error:
            warnings.warn(f"{error} The one before it will be used, if there is one.", stacklevel=2)
    return None


def remove_leftovers(directory: Path) -> None:
    """Remove what a run left that was killed while it wrote or removed something."""
    for pattern in (".*.partial", ".*.old"):
        for path in directory.glob(pattern):
            shutil.rmtree(path, ignore_errors=True)


def remove_directory(path: Path) -> None:
    """Remove a directory such that nobody sees half of it under its name."""
    aside = path.with_name(f".{path.name}.old")
    shutil.rmtree(aside, ignore_errors=True)
    path.rename(aside)
    shutil.rmtree(aside)


def _save_tensors(tensors: dict[str, torch.Tensor], path: Path) -> None:
    # Safetensors takes no two names for one memory, as tied weights have, and no views.
    owned = {name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}
    try:
        save_file(owned, path, metadata={"format": "pt"})
    except SafetensorError as error:
        # It has an error of its own for what the system says, a full disk for example.
        raise OSError(f"{path.name}: {error}") from error


def _write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


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
