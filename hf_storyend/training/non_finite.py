"""What to do with a batch whose loss is not a number."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import save_file

from .updates import Update

FOLDER = "non_finite"
# Skipping on and on would only hide that the weights themselves are broken.
MAX_SKIPPED_IN_A_ROW = 20


class NonFiniteLoss(ArithmeticError):
    """The loss or the gradients were not finite, and the run was told to stop."""


def save_offenders(directory: Path, step: int, process_index: int, update: Update) -> Path:
    """Write the batches of an update for inspection: their tensors, and which stories they hold."""
    folder = directory / FOLDER
    folder.mkdir(exist_ok=True)
    path = folder / f"step-{step}-process-{process_index}.safetensors"
    tensors = {
        f"{number}/{name}": value.detach().cpu().contiguous()
        for number, batch in enumerate(update.tensors)
        for name, value in batch.items()
        if isinstance(value, torch.Tensor)
    }
    save_file(tensors, path)
    stories = {"step": step, "process": process_index, "rows": update.rows}
    path.with_suffix(".json").write_text(json.dumps(stories) + "\n", encoding="utf-8")
    return path
