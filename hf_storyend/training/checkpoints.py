"""
Checkpoints: written atomically, verified by checksums, resumed only by the run that they belong to.

A checkpoint is a directory `checkpoint-<step>` with two safetensors files (weights and optimizer state), `state.json`
and a manifest of checksums.
"""

from __future__ import annotations

import hashlib
import itertools
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

from ..files import atomic_directory, atomic_write, make_directory, remove_leftovers, sync, temporary_sibling
from ..manifest import (
    MANIFEST,
    ManifestError,
    find_damage,
    read_manifest,
    recover_directory,
    recover_published_files,
    write_manifest,
)
from .distributed import broadcast_from_main, write_on_main_process
from .options import RENAMED_OPTIONS, TrainingOptions
from .run_lock import HOLDER, LOCK, RunLock

logger = logging.getLogger(__name__)

OPTIONS = "training_options.json"
# The best model so far, and the temporary name of a finished run's files.
BEST, RESULTS = "best", "results"
_FILES = {"model.safetensors", "optimizer.safetensors", "state.json"}
_NAME = re.compile(r"checkpoint-(\d+)")
# Names in an output directory that are written atomically; their leftovers are deleted.
_WRITTEN = rf"checkpoint-\d+|{BEST}|{RESULTS}|training_options\.json|train_log\.jsonl|\.run\.json|result\.json"
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
    "max_eval_samples",
    "num_beams",
)
# Looked at when a checkpoint is resumed, and not part of the digest by which finished models are known.
_OF_CHECKPOINTS_ONLY = ("training stories", "tokenizer", "model", "changeable")
# What checkpoints of earlier versions do not tell.
_UNTOLD_BEFORE = (
    *("max_eval_samples", "num_beams", "vocabulary", "knowledge", "validation stories"),
    *("training stories", "tokenizer", "model"),
)
# Options that a resumed run may change, with what that changes.
_CHANGEABLE = {
    "max_steps": "the learning rate follows the new length",
    "num_train_epochs": "the learning rate follows the new length",
    "max_minutes": "the learning rate follows the new length",
    "eval_steps": "the best model is looked for at other updates",
    "early_stopping_patience": "the run may end elsewhere",
    "number of processes": "sums have another order, so weights differ in the last bits",
}


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
    """Write a checkpoint into `directory` and delete all but the newest `keep` of those that are intact."""
    target = directory / f"checkpoint-{checkpoint.step}"
    with atomic_directory(target) as folder:
        _save_tensors(checkpoint.weights, folder / "model.safetensors")
        _save_tensors(checkpoint.optimizer, folder / "optimizer.safetensors")
        _write_json(folder / "state.json", {"step": checkpoint.step, **checkpoint.state})
        write_manifest(folder, "checkpoint", step=checkpoint.step)
    others = [path for path in find_checkpoints(directory) if path != target and not _set_aside_if_damaged(path)]
    for old in others[keep - 1 :]:
        remove_directory(old)
    return target


def _set_aside_if_damaged(path: Path) -> bool:
    """Rename a damaged checkpoint, for people to look at: it must not count in place of one that is intact."""
    try:
        verify_checkpoint(path)
        return False
    except CheckpointError as error:
        names = (path.with_name(f"{path.name}.damaged-{number}") for number in itertools.count(1))
        aside = next(name for name in names if not name.exists())
        path.rename(aside)
        logger.warning("%s It is set aside as %s.", error, aside.name)
        return True


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
        files = read_manifest(path)["files"]
    except ManifestError as error:
        raise CheckpointError(f"{path} is not a complete checkpoint: {error}") from error
    if set(files) != _FILES:
        raise CheckpointError(f"{path / MANIFEST} does not list the files of a checkpoint.")
    damage = find_damage(path)
    if damage:
        raise CheckpointError(f"{path} is damaged: {', '.join(damage)}.")


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


def recover_output_dir(directory: Path) -> None:
    """Finish what a killed run or a loss of power has interrupted, and delete what it left behind."""
    recover_directory(directory / BEST)
    recover_published_files(directory, RESULTS)
    remove_leftovers(directory, _WRITTEN)


def remove_directory(path: Path) -> None:
    """Delete a directory; it is renamed first, so that no partial content is visible under its name."""
    if path.is_symlink():
        # Somebody keeps it elsewhere: what is there is not ours to delete.
        path.unlink()
        return
    renamed = temporary_sibling(path, "old")
    path.rename(renamed)
    # Else a loss of power might leave parts of it under its name.
    sync(path.parent)
    shutil.rmtree(renamed)


def find_resume_checkpoint(options: TrainingOptions, accelerator: Accelerator, lock: RunLock) -> Path | None:
    """
    Create and lock the output directory, and return the checkpoint to resume from, the same one in all processes.

    A directory that is not one of ours is refused before anything is created or deleted in it.
    """
    checkpoint: Path | None = None
    problem: Exception | None = None
    if accelerator.is_main_process:
        try:
            checkpoint = _open_output_dir(Path(options.output_dir), options.resume_from_checkpoint, lock)
        except ValueError as error:
            problem = error
        except OSError as error:
            problem = OSError(f"{options.output_dir} could not be written: {error}.")
    checkpoint, problem = broadcast_from_main(accelerator, (checkpoint, problem))
    if problem is not None:
        raise problem
    return checkpoint


def run_identity(
    options: TrainingOptions, accelerator: Accelerator, data: dict[str, Any], digests: dict[str, str]
) -> dict[str, Any]:
    """Return what must be equal for one run to resume another's checkpoint, and as `changeable` what should be."""
    return {
        **{name: getattr(options, name) for name in _FIXED_OPTIONS},
        "global batch size": options.per_device_train_batch_size * accelerator.num_processes,
        "precision": str(accelerator.mixed_precision),
        "data": data,
        **digests,
        "changeable": {
            **{name: getattr(options, name) for name in _CHANGEABLE if hasattr(options, name)},
            "number of processes": accelerator.num_processes,
        },
    }


def identity_digest(identity: dict[str, Any]) -> str:
    """Return a digest of what must be equal for one run to resume another's checkpoint."""
    fixed = {name: value for name, value in identity.items() if name not in _OF_CHECKPOINTS_ONLY}
    return hashlib.sha256(json.dumps(fixed, sort_keys=True).encode()).hexdigest()


def check_identity(checkpoint: Path, saved: dict[str, Any], current: dict[str, Any]) -> list[str]:
    """
    Raise a ValueError unless a checkpoint belongs to this run.

    Returns:
        A sentence for everything that differs and may, for the user to read.
    """
    renamed = [f"`{old}` is now `{new}`" for old, new in RENAMED_OPTIONS.items() if old in saved]
    if renamed:
        raise ValueError(
            f"{checkpoint} was written by an earlier version, whose options had other names ({', '.join(renamed)}), "
            "and can't be resumed. Use another `--output_dir`; `--model_name_or_path` starts from a model's weights."
        )
    untold = [name for name in _UNTOLD_BEFORE if name in current and name not in saved]
    different = [
        f"`{name}` was {before!r}, is {now!r}"
        for name, value in current.items()
        if saved.get(name) != value and name not in untold and name != "changeable"
        for before, now in [_different_parts(saved.get(name), value)]
    ]
    if different:
        raise ValueError(
            f"{checkpoint} belongs to another run: {'; '.join(different)}. "
            "Use the same options, or another `--output_dir`."
        )
    return _changes(checkpoint, saved.get("changeable") or {}, current.get("changeable") or {}, untold)


def _different_parts(saved: Any, current: Any) -> tuple[Any, Any]:
    """Return two values; of two dictionaries, what is not the same in both."""
    if not (isinstance(saved, dict) and isinstance(current, dict)):
        return saved, current
    names = [name for name in {**saved, **current} if saved.get(name) != current.get(name)]
    first, second = ({name: values[name] for name in names if name in values} for values in (saved, current))
    return first, second


def _changes(checkpoint: Path, saved: dict[str, Any], current: dict[str, Any], untold: list[str]) -> list[str]:
    told = [
        f"{checkpoint} is resumed with another `{name}` ({saved[name]!r} before, {value!r} now): {_CHANGEABLE[name]}."
        for name, value in current.items()
        if name in saved and saved[name] != value
    ]
    if untold:
        names = ", ".join(f"`{name}`" for name in untold)
        told.append(f"{checkpoint} does not tell its {names}: they are taken to be the same.")
    return told


def write_options(options: TrainingOptions, accelerator: Accelerator) -> None:
    """Save the options in the output directory, which also marks it as a training run."""
    path = Path(options.output_dir) / OPTIONS
    text = json.dumps(options.to_dict(), indent=1) + "\n"
    write_on_main_process(accelerator, lambda: atomic_write(path, text), str(path))


def _open_output_dir(directory: Path, resume: str, lock: RunLock) -> Path | None:
    _check_is_run(directory)
    make_directory(directory)
    lock.acquire()
    recover_output_dir(directory)
    if resume not in ("auto", "never"):
        if not Path(resume).is_dir():
            raise ValueError(
                f"`--resume_from_checkpoint {resume}` is neither `auto` nor `never` nor a checkpoint directory."
            )
        return Path(resume)
    found = list(find_checkpoints(directory))
    if resume == "never" and found:
        raise ValueError(
            f"{directory} holds the checkpoints of a run. Resume it with `--resume_from_checkpoint auto`, "
            "or use another directory."
        )
    latest = latest_valid_checkpoint(directory)
    if latest is None and found:
        raise ValueError(f"{directory} has no valid checkpoint: choose another `--output_dir`, or repair them.")
    return latest


def _check_is_run(directory: Path) -> None:
    names = {path.name for path in directory.iterdir()} if directory.is_dir() else set()
    # A run that was killed before it wrote anything else leaves its lock.
    if not names - {LOCK, HOLDER} or OPTIONS in names or any(find_checkpoints(directory)):
        return
    raise ValueError(f"{directory} is not empty and not a training run: choose another `--output_dir`.")


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
