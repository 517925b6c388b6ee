"""
Checkpoints: written atomically, verified by checksums, resumed only by the run that they belong to.

A checkpoint is a directory `checkpoint-<step>` with two safetensors files (weights and optimizer state), `state.json`
and a manifest of checksums.
"""

from __future__ import annotations

import json
import logging
import re
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from ..files import atomic_directory, file_digest
from .distributed import broadcast_from_main, write_on_main_process
from .options import RENAMED_OPTIONS, TrainingOptions

logger = logging.getLogger(__name__)

MANIFEST = "manifest.json"
OPTIONS = "training_options.json"
_NAME = re.compile(r"checkpoint-(\d+)")
# Options that a resumed run may not change: the state of the optimizer would no longer fit.
_FIXED_OPTIONS = (
    "system",
    "model_name_or_path",
    "hidden_size",
    "num_layers",
    "embedding_size",
    "dropout",
    "tie_word_embeddings",
    "prediction_vector",
    "attend_empty_graphs",
    "encoder_loss_weight",
    "encoder_loss_sampling_ratio",
    "num_sampled_classes",
    "recipe",
    "learning_rate",
    "warmup_ratio",
    "weight_decay",
    "max_grad_norm",
    "gradient_accumulation_steps",
    "seed",
    "metric_for_best_model",
)


class CheckpointError(ValueError):
    """A checkpoint is incomplete, damaged or from another kind of run."""


@dataclass
class RunState:
    """
    Progress of a run.

    Args:
        step: Updates made or skipped so far.
        epoch, updates_in_epoch: Completed epochs, and updates of the current one.
        elapsed: Seconds of training, including those before a resume, excluding evaluations.
        epoch_loss: Sum of the losses of the current epoch.
        best_metric, best_step: Value and step of the best evaluation so far.
        evaluations_without_progress: Evaluations since then.
        skipped_in_a_row: Consecutive updates skipped because of a non-finite loss.
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


@dataclass
class Checkpoint:
    """Everything that a run needs to resume bit-exactly."""

    step: int
    weights: dict[str, torch.Tensor]
    optimizer: dict[str, torch.Tensor]
    state: dict[str, Any]


def save_checkpoint(directory: Path, checkpoint: Checkpoint, keep: int) -> Path:
    """Write a checkpoint into `directory` and delete all but the newest `keep`."""
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
    """Read a checkpoint and verify every file against the manifest."""
    verify_checkpoint(path)
    try:
        state = json.loads((path / "state.json").read_text(encoding="utf-8"))
        weights, optimizer = (load_file(path / f"{name}.safetensors") for name in ("model", "optimizer"))
    except (OSError, ValueError, RecursionError, SafetensorError) as error:
        raise CheckpointError(f"{path} can't be read: {error}") from error
    if not isinstance(state, dict) or type(state.get("step")) is not int:
        raise CheckpointError(f"{path / 'state.json'} has no `step`.")
    for tensors in (weights, optimizer):
        for name, tensor in tensors.items():
            if not bool(tensor.isfinite().all()):
                raise CheckpointError(f"{path} has `{name}` with values that are not finite.")
    return Checkpoint(state.pop("step"), weights, optimizer, state)


def verify_checkpoint(path: Path) -> None:
    """Raise a [`CheckpointError`] unless the files match the manifest."""
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
    """Yield the checkpoints of a run, newest first."""
    found = [(int(match[1]), path) for path in directory.glob("checkpoint-*") if (match := _NAME.fullmatch(path.name))]
    yield from (path for _, path in sorted(found, reverse=True))


def latest_valid_checkpoint(directory: Path) -> Path | None:
    """Return the newest complete checkpoint; damaged ones are skipped with a warning."""
    for path in find_checkpoints(directory):
        try:
            verify_checkpoint(path)
            return path
        except CheckpointError as error:
            logger.warning("%s Trying the previous checkpoint, if there is one.", error)
    return None


def remove_temporary_files(directory: Path) -> None:
    """Delete what a run left behind that was killed while writing or deleting."""
    for pattern in (".*.partial", ".*.old"):
        for path in directory.glob(pattern):
            shutil.rmtree(path, ignore_errors=True)


def remove_directory(path: Path) -> None:
    """Delete a directory; it is renamed first, so that no partial content is visible under its name."""
    renamed = path.with_name(f".{path.name}.old")
    shutil.rmtree(renamed, ignore_errors=True)
    path.rename(renamed)
    shutil.rmtree(renamed)


def find_resume_checkpoint(options: TrainingOptions, accelerator: Accelerator) -> Path | None:
    """Create the output directory and return the checkpoint to resume from, the same one in all processes."""
    directory = Path(options.output_dir)
    write_on_main_process(accelerator, lambda: directory.mkdir(parents=True, exist_ok=True), str(directory))
    resume = options.resume_from_checkpoint
    if resume not in ("auto", "never"):
        if not Path(resume).is_dir():
            raise ValueError(
                f"`--resume_from_checkpoint {resume}` is neither `auto` nor `never` nor a checkpoint directory."
            )
        return Path(resume)
    checkpoint, problem = None, None
    if accelerator.is_main_process:
        remove_temporary_files(directory)
        try:
            checkpoint = _find_in_output_dir(directory, resume)
        except ValueError as error:
            problem = str(error)
    checkpoint, problem = broadcast_from_main(accelerator, (checkpoint, problem))
    if problem is not None:
        raise ValueError(problem)
    return checkpoint


def run_identity(options: TrainingOptions, accelerator: Accelerator, data: dict[str, Any]) -> dict[str, Any]:
    """Return what must be equal for one run to resume another's checkpoint."""
    return {
        **{name: getattr(options, name) for name in _FIXED_OPTIONS},
        "global batch size": options.per_device_train_batch_size * accelerator.num_processes,
        "precision": str(accelerator.mixed_precision),
        "data": data,
    }


def check_identity(checkpoint: Path, saved: dict[str, Any], current: dict[str, Any]) -> None:
    """Raise a ValueError unless a checkpoint belongs to this run."""
    renamed = [f"`{old}` is now `{new}`" for old, new in RENAMED_OPTIONS.items() if old in saved]
    if renamed:
        raise ValueError(
            f"{checkpoint} was written by an earlier version, whose options had other names ({', '.join(renamed)}), "
            "and can't be resumed. Use another `--output_dir`; `--model_name_or_path` starts from a model's weights."
        )
    different = [
        f"`{name}` was {saved.get(name)!r}, is {value!r}"
        for name, value in current.items()
        if saved.get(name) != value
    ]
    if different:
        raise ValueError(
            f"{checkpoint} belongs to another run: {'; '.join(different)}. "
            "Use the same options, or another `--output_dir`."
        )


def write_options(options: TrainingOptions, accelerator: Accelerator) -> None:
    """Save the options in the output directory, which also marks it as a training run."""
    path = Path(options.output_dir) / OPTIONS
    text = json.dumps(options.to_dict(), indent=1) + "\n"
    write_on_main_process(accelerator, lambda: path.write_text(text, encoding="utf-8"), str(path))


def _find_in_output_dir(directory: Path, resume: str) -> Path | None:
    found = list(find_checkpoints(directory))
    if resume == "never" and found:
        raise ValueError(
            f"{directory} holds the checkpoints of a run. Resume it with `--resume_from_checkpoint auto`, "
            "or use another directory."
        )
    if not found:
        if any(directory.iterdir()) and not (directory / OPTIONS).is_file():
            raise ValueError(f"{directory} is not empty and not a training run: choose another `--output_dir`.")
        return None
    latest = latest_valid_checkpoint(directory)
    if latest is None:
        raise ValueError(f"{directory} has no valid checkpoint: choose another `--output_dir`, or repair them.")
    return latest


def _save_tensors(tensors: dict[str, torch.Tensor], path: Path) -> None:
    # Safetensors accepts neither shared memory, as of tied weights, nor views.
    owned = {name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}
    try:
        save_file(owned, path, metadata={"format": "pt"})
    except SafetensorError as error:
        # Safetensors wraps system errors, such as a full disk.
        raise OSError(f"{path.name}: {error}") from error


def _write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
