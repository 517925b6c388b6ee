"""Save a trained model in half precision: float16 weights on disk, float32 in memory."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from .modeling import IncrementalEncoderForEndingGeneration, IncrementalEncoderTokenizer


def save_half_precision(model_directory: str | Path, output_dir: str | Path) -> None:
    """
    Save a model and its tokenizer with float16 weights, for models that are shipped in a package.

    The configuration keeps the dtype float32, so `from_pretrained` computes in single precision. No remote code is
    saved: the package has it.

    Args:
        model_directory: The trained model.
        output_dir: Directory to write; other files in it are left alone.

    Raises:
        ValueError: If a weight exceeds the range of float16.
    """
    model = IncrementalEncoderForEndingGeneration.from_pretrained(model_directory, dtype=torch.float32)
    _check_range(model)
    tokenizer = IncrementalEncoderTokenizer.from_pretrained(model_directory)
    # A temporary directory tells the model's files from others in `output_dir`.
    with tempfile.TemporaryDirectory() as temporary:
        folder, target = Path(temporary), Path(output_dir)
        model.save_pretrained(folder, max_shard_size="1TB")
        tokenizer.save_pretrained(folder)
        _convert_weights(folder / "model.safetensors")
        for name in ("config.json", "tokenizer_config.json"):
            _remove_code_references(folder / name)
        target.mkdir(parents=True, exist_ok=True)
        for path in folder.iterdir():
            if path.suffix != ".py":
                shutil.copyfile(path, target / path.name)


def _check_range(model: IncrementalEncoderForEndingGeneration) -> None:
    for name, weight in model.state_dict().items():
        largest = weight.abs().max()
        # Also false for NaN.
        if not largest <= torch.finfo(torch.float16).max:
            raise ValueError(f"`{name}` has weights that half precision can't hold: the largest is {largest}.")


def _convert_weights(path: Path) -> None:
    weights = {name: tensor.half() for name, tensor in load_file(path).items()}
    save_file(weights, path, metadata={"format": "pt"})


def _remove_code_references(path: Path) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    for entry in ("auto_map", "custom_pipelines"):
        content.pop(entry, None)
    path.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", encoding="utf-8")
