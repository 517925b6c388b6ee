"""Which files of a model's directory go to the Hub: those that `from_pretrained` reads, the card and its results."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from ..modeling import IncrementalEncoderConfig, IncrementalEncoderTokenizer
from .code import code_files_of

REQUIRED = ("config.json", "generation_config.json", "tokenizer_config.json")
OPTIONAL = ("added_tokens.json", "special_tokens_map.json", "README.md")
WEIGHTS, WEIGHTS_INDEX = "model.safetensors", "model.safetensors.index.json"
RESULTS = ".eval_results"


def model_files(folder: Path) -> dict[str, Path]:
    """
    The files to push by their paths in the repository. Nothing else of the directory goes along: checkpoints, logs and
    written endings, which hold sentences of the corpus, stay where they are.
    """
    config = read_config(folder)
    names = [*REQUIRED, *IncrementalEncoderTokenizer.vocab_files_names.values(), *_weights(folder)]
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise ValueError(
            f"{folder} has no {', '.join(missing)}: save model and tokenizer there with `save_pretrained`."
        )
    names += [name for name in OPTIONAL if (folder / name).is_file()]
    names += [path.relative_to(folder).as_posix() for path in sorted((folder / RESULTS).glob("*.yaml"))]
    code = code_files_of(folder, config, _read_json(folder / "tokenizer_config.json"))
    return {name: folder / name for name in sorted(names)} | code


def is_replaced(path: str) -> bool:
    """Whether a file of the repository is one that a push takes away where the directory lacks it: code or weights."""
    return re.fullmatch(r"[^/]+\.py|model[^/]*\.safetensors|model\.safetensors\.index\.json", path) is not None


def read_config(folder: Path) -> dict[str, Any]:
    """The model's configuration as it is on disk."""
    path = folder / "config.json"
    if not path.is_file():
        raise ValueError(f"{folder} is not a model's directory: it has no config.json.")
    config = _read_json(path)
    model_type = config.get("model_type")
    if model_type != IncrementalEncoderConfig.model_type:
        raise ValueError(
            f"{path}: `model_type` must be '{IncrementalEncoderConfig.model_type}'; got {model_type!r}. "
            "Only models of this package can be pushed."
        )
    return config


def _weights(folder: Path) -> list[str]:
    if not (folder / WEIGHTS_INDEX).is_file():
        return [WEIGHTS]
    return [WEIGHTS_INDEX, *sorted(set(_read_json(folder / WEIGHTS_INDEX)["weight_map"].values()))]


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is not JSON: {error}.") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} must hold a JSON object; got {type(content).__name__}.")
    return content
