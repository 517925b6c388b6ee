"""
Checkpoints on disk: complete or not there, checked when they are read, the oldest removed.

A checkpoint is a directory `checkpoint-<step>` with the weights and the optimiser's tensors as safetensors, everything
else as JSON, and a manifest of checksums. Nothing is pickled.
"""

from __future__ import annotations

import json
import re
import shutil
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from ..directories import file_digest, written_aside

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
    with written_aside(target) as folder:
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
