"""Loading that says which model is at fault: damaged files make the libraries below fail in many ways."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from torch import nn


@contextmanager
def naming(model: object) -> Iterator[None]:
    """Let errors name the model, a directory or a name on the Hub. Odd ones become a `ValueError`."""
    try:
        yield
    except (ImportError, MemoryError):
        raise
    except OSError as error:
        if str(model) in str(error):
            raise
        raise OSError(f"{model} can't be loaded: {error}") from error
    except Exception as error:
        if isinstance(error, ValueError) and str(model) in str(error):
            raise
        raise ValueError(f"{model} can't be loaded ({type(error).__name__}): {error}") from error


def check_weight_files(*names: object) -> None:
    """Refuse files of weights that are not safetensors: a configuration or an index may name others."""
    for name in names:
        if name is not None and not str(name).endswith((".safetensors", ".safetensors.index.json")):
            raise ValueError(f"{name!r:.80} is no safetensors file: pickled weights are never read.")


def check_shards(model: object) -> None:
    """The same for what the index of a local directory names."""
    for path in Path(str(model)).glob("*.safetensors.index.json"):
        index = json.loads(path.read_text(encoding="utf-8"))
        check_weight_files(*index["weight_map"].values())


def check_finite(model: nn.Module) -> None:
    """Refuse weights that are no numbers: what they compute would be nonsense that looks like an ending."""
    for name, weight in model.named_parameters():
        if not weight.is_meta and weight.is_floating_point() and not bool(weight.isfinite().all()):
            raise ValueError(
                f"`{name}` has values that are not finite: the file is damaged, or training had diverged."
            )
