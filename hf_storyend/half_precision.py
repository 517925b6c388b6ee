"""A trained model in half the space: weights of two bytes on disk, of four in memory."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from .modeling import IncrementalEncoderForEndingGeneration, IncrementalEncoderTokenizer

_WEIGHTS = "model.safetensors"
_CONFIGS = ("config.json", "tokenizer_config.json")


def save_compact(model_directory: str | Path, output: str | Path, **generation: Any) -> None:
    """
    Save a model and its tokenizer to `output` with weights in half precision. They are computed with in single
    precision: the configuration says so, and `from_pretrained` follows it. No code goes along: this is for models
    that come with a package, which has it. `generation` are settings of `generate()` to save with it.
    """
    output = Path(output)
    model = IncrementalEncoderForEndingGeneration.from_pretrained(model_directory, dtype=torch.float32)
    _check_range(model)
    model.generation_config.update(**generation)
    tokenizer = IncrementalEncoderTokenizer.from_pretrained(model_directory)
    # Aside, so that no file of the user's that stands in `output` is taken for one of the model's.
    with tempfile.TemporaryDirectory() as aside:
        model.save_pretrained(aside, max_shard_size="1TB")
        tokenizer.save_pretrained(aside)
        _halve(Path(aside) / _WEIGHTS)
        for name in _CONFIGS:
            _forget_code(Path(aside) / name)
        output.mkdir(parents=True, exist_ok=True)
        for path in Path(aside).iterdir():
            if path.suffix != ".py":
                shutil.copyfile(path, output / path.name)


def _check_range(model: IncrementalEncoderForEndingGeneration) -> None:
    largest = torch.finfo(torch.float16).max
    for name, weight in model.state_dict().items():
        if not weight.abs().max() <= largest:
            raise ValueError(
                f"`{name}` has weights that half precision can't hold: the largest is {weight.abs().max()}."
            )


def _halve(path: Path) -> None:
    weights = {name: tensor.half() for name, tensor in load_file(path).items()}
    save_file(weights, path, metadata={"format": "pt"})


def _forget_code(path: Path) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    for entry in ("auto_map", "custom_pipelines"):
        content.pop(entry, None)
    path.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", encoding="utf-8")
