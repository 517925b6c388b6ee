# Copyright 2026 The hf_storyend authors.
# SPDX-License-Identifier: Apache-2.0
"""Loading and saving: supported versions, and files checked so that errors say which one is at fault."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import nn
from transformers.utils import cached_file, find_adapter_config_file, is_peft_available, logging

logger = logging.get_logger(__name__)

RELEASE = "0.1.0"
# At least the first and below the second.
SUPPORTED_TRANSFORMERS = ("5.18.0", "6")
# Settings of `generate` that memory is taken for.
_COUNTS = ("num_beams", "num_return_sequences", "max_new_tokens", "max_length")
_ROOT = Path("/")
# Arguments of `from_pretrained` that say where files are.
_DOWNLOAD = ("cache_dir", "force_download", "proxies", "token", "revision", "local_files_only", "subfolder")
# Where a container's limit and use of memory stand, by version of control groups.
_CONTROL_GROUPS = (
    ("sys/fs/cgroup", "memory.max", "memory.current"),
    ("sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
)


def library_versions() -> dict[str, str]:
    """Versions that a model is saved with."""
    lowest, limit = SUPPORTED_TRANSFORMERS
    return {
        "hf_storyend": RELEASE,
        "transformers": transformers.__version__,
        "torch": str(torch.__version__),
        "supported_transformers": f">={lowest},<{limit}",
    }


def check_transformers() -> None:
    """
    Refuse a transformers that is too old to run this code, and warn of one that is newer than what it was tested with:
    that may well work.
    """
    lowest, limit = SUPPORTED_TRANSFORMERS
    version = transformers.__version__
    said = f"This model's code (hf_storyend {RELEASE}) is for transformers>={lowest},<{limit}; {version} is installed"
    if _numbers(version) < _numbers(lowest):
        raise ImportError(f'{said}, which is too old: pip install "transformers>={lowest},<{limit}".')
    if _numbers(version) >= _numbers(limit):
        logger.warning(
            f"{said}, which it was never run with. If it fails or writes nonsense: "
            f'pip install "transformers>={lowest},<{limit}".'
        )


def _numbers(version: str) -> tuple[int, ...]:
    """5.18.1.dev0 -> (5, 18, 1)."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


@contextmanager
def error_context(model: object) -> Iterator[None]:
    """Let errors name the model, a directory or a name on the Hub. Unexpected types become a `ValueError`."""
    try:
        yield
    except (ImportError, MemoryError):
        raise
    except RuntimeError as error:
        # Not the model's fault: generic code knows the message by its type.
        if "meta" in str(error) and "device" in str(error):
            raise
        raise ValueError(f"{model} can't be loaded (RuntimeError): {error}") from error
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
        if name is not None and not str(name).endswith(".safetensors"):
            raise ValueError(f"{name!r:.80} is no safetensors file: pickled weights are never read.")


def check_shards(model: object, settings: Mapping[str, Any]) -> None:
    """
    The same for what an index of shards names, in a directory or on the Hub.

    Args:
        model: What `from_pretrained` is given.
        settings: Its keyword arguments.
    """
    path = Path(str(model))
    if path.is_file():
        check_weight_files(model)
    if path.is_dir():
        indices = [*(path / (settings.get("subfolder") or "")).glob("*.safetensors.index*.json")]
    else:
        index = None if model is None else _index_on_hub(str(model), settings)
        indices = [] if index is None else [index]
    for index in indices:
        shards = read_json(str(index)).get("weight_map")
        if not isinstance(shards, dict):
            raise ValueError(f"{index} has no `weight_map`.")
        check_weight_files(*shards.values())


def check_adapters(model: object, settings: Mapping[str, Any]) -> None:
    """
    Refuse adapters in place of a model: with PEFT, transformers would load the model that they name, whatever its
    weights are.
    """
    path = Path(str(model))
    if model is None or not is_peft_available() or path.is_file() or (path / "config.json").is_file():
        return
    found = find_adapter_config_file(str(model), **_download_settings(settings))
    if found is not None:
        raise ValueError(
            f"{found} is of an adapter: load the model that it is for, and then the adapter with "
            "`peft.PeftModel.from_pretrained`."
        )


def _download_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: settings[name] for name in _DOWNLOAD if settings.get(name) is not None}


def _index_on_hub(model: str, settings: Mapping[str, Any]) -> Path | None:
    """The index that transformers would read, if the model has no weights in one file."""
    given = _download_settings(settings)
    variant = f".{settings['variant']}" if settings.get("variant") else ""
    for name in (f"model{variant}.safetensors", f"model.safetensors.index{variant}.json"):
        try:
            found = cached_file(model, name, **given)
        except OSError:
            # It has no such file, or can't be reached: transformers says which.
            continue
        return Path(found) if found is not None and name.endswith(".json") else None
    return None


def check_missing_keys(information: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    """
    Refuse files without some of the weights, which transformers would fill at random.

    `ignore_mismatched_sizes=True` asks for that, to give a model new parts.
    """
    missing = sorted(information["missing_keys"])
    if missing and not settings.get("ignore_mismatched_sizes"):
        names = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        raise ValueError(f"the weights lack {names}: the file is incomplete, or of another configuration.")


def check_size(config: Any, weights: Sequence[Path] = ()) -> None:
    """
    Refuse sizes that the memory, or the files of weights, can't hold, before any memory is taken.

    Args:
        config: The configuration of a model.
        weights: Files of weights, if there are any.
    """
    # Less than the model has: embeddings, output projection and the recurrent part of the LSTM.
    output = 0 if config.tie_word_embeddings else config.vocab_size * config.hidden_size
    has_relations = config.knowledge is not None or config.tail_pointer
    num_vectors = config.vocab_size + (config.num_relations if has_relations else 0)
    num_values = num_vectors * config.embedding_size + output + 4 * config.hidden_size**2 * config.num_layers
    names = ["vocab_size", "num_relations", "embedding_size", "hidden_size", "num_layers"]
    if config.ranker_size is not None:
        # Of each layer: four projections of its attention, and a feed-forward network four times as wide.
        num_values += 12 * config.ranker_size**2 * config.num_ranker_layers
        num_values += config.vocab_size * config.ranker_embedding_size
        names += ["ranker_size", "ranker_embedding_size", "num_ranker_layers"]
    sizes = ", ".join(f"`{name}` {getattr(config, name):,}" for name in names)
    check_memory(4 * num_values, f"a model of {sizes}")
    num_bytes = sum(path.stat().st_size for path in weights)
    if weights and num_values > num_bytes:
        raise ValueError(f"the weights have {num_bytes:,} bytes, too few for {sizes}: the configuration is another.")


def check_size_of_files(config_class: Any, model: object, settings: Mapping[str, Any]) -> None:
    """The same for a directory, or a configuration, that `from_pretrained` is given."""
    folder, config = Path(str(model)) / (settings.get("subfolder") or ""), settings.get("config")
    is_directory = model is not None and folder.is_dir()
    if not isinstance(config, config_class):
        if not is_directory or not (folder / "config.json").is_file():
            return
        config = config_class.from_pretrained(folder)
    # Quantised weights may take less than a byte each.
    is_quantized = getattr(config, "quantization_config", None) is not None
    check_size(config, [*folder.glob("*.safetensors")] if is_directory and not is_quantized else ())


def check_generation_settings(model: Any, generation_config: Any, settings: Mapping[str, Any]) -> None:
    """Refuse settings of `generate` that are no numbers, and more beams, endings or words than the memory can hold."""
    given = vars(generation_config or model.generation_config) | {
        name: value for name, value in settings.items() if value is not None
    }
    for name, value in given.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"`{name}` must be a finite number; got {value}.")
    counts = {name: given[name] for name in _COUNTS if given.get(name) is not None}
    for name, value in counts.items():
        if isinstance(value, bool) or not hasattr(value, "__index__") or value < 1:
            raise ValueError(f"`{name}` must be a whole number of at least 1; got {shortened(value)}.")
    if model.device.type == "cpu":
        _check_memory_of_beams(model.config, counts, given)


def _check_memory_of_beams(config: Any, counts: Mapping[str, int], given: Mapping[str, Any]) -> None:
    tensors = [given.get(name) for name in ("input_ids", "inputs")]
    num_stories = next((len(tensor) for tensor in tensors if tensor is not None), 1)
    num_beams = counts.get("num_beams", 1)
    num_rows = max(num_beams, counts.get("num_return_sequences", 1)) * num_stories
    # Logits in single precision, and what beam search makes of them.
    num_bytes = 10 * 4 * num_rows * config.num_output_words
    if num_beams > 1:
        # Words of the endings, finished and not, and where they came from.
        num_bytes += (8 + 8 + 4) * num_rows * max(counts.get(name, 1) for name in ("max_new_tokens", "max_length"))
    named = ", ".join(f"`{name}` {value:,}" for name, value in counts.items() if value > 1)
    check_memory(num_bytes, f"{named or 'generation'} for {num_stories:,} stories")


def check_memory(num_bytes: int, what: str) -> None:
    """Refuse what needs more memory than there is."""
    available = _available_memory()
    if available is not None and num_bytes > available:
        raise ValueError(
            f"{what} would need {num_bytes / 2**30:,.1f} GB of memory; {available / 2**30:,.1f} GB are free."
        )


def _available_memory() -> int | None:
    """Bytes of memory that can be had without swapping, where Linux tells: of the machine, or of a container in it."""
    known = [size for size in (_memory_of_machine(), _memory_of_container()) if size is not None]
    return min(known, default=None)


def _memory_of_machine() -> int | None:
    try:
        lines = (_ROOT / "proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration):
        return None


def _memory_of_container() -> int | None:
    """What the control group may still take; files that it has read make room."""
    for folder, limit, usage in _CONTROL_GROUPS:
        try:
            left = int((_ROOT / folder / limit).read_text()) - int((_ROOT / folder / usage).read_text())
            lines = (_ROOT / folder / "memory.stat").read_text().splitlines()
            return max(0, left + next(int(line.split()[1]) for line in lines if line.startswith("inactive_file ")))
        except (OSError, ValueError, StopIteration):
            # Another version of control groups, or "max".
            continue
    return None


def check_finite(model: nn.Module) -> None:
    """Refuse weights that are no numbers: what they compute would be nonsense that looks like an ending."""
    for name, weight in model.named_parameters():
        # Quantised weights are of a type of their own, which has no such operation.
        is_plain = type(weight) in (nn.Parameter, torch.Tensor)
        if is_plain and not weight.is_meta and weight.is_floating_point() and not bool(weight.isfinite().all()):
            raise ValueError(
                f"`{name}` has values that are not finite: the file is damaged, or training had diverged."
            )


def read_json(path: str) -> dict[str, Any]:
    """A JSON object from a file."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON: {error}.") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} must hold a JSON object; got {type(content).__name__}.")
    return content


def read_forms(path: str) -> dict[str, str]:
    """How words in lower case are usually printed."""
    forms = read_json(path)
    for word, form in forms.items():
        if not isinstance(form, str):
            raise ValueError(f"{path}: the form of {word!r} must be a string; got {shortened(form)}.")
    return forms


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """A JSON object to a file, an entry a line."""
    path.write_text(json.dumps(content, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")


def check_vocabulary(ids: dict[str, Any], origin: str) -> dict[str, int]:
    """Ids must be 0, 1, 2, ...: a hole or a double would give words the vectors of others."""
    # By type, too: True and 1.0 equal 1, and are no ids.
    is_whole = all(type(index) is int for index in ids.values())
    if not is_whole or sorted(ids.values()) != list(range(len(ids))):
        raise ValueError(f"{origin}: ids must be the whole numbers from 0 to {len(ids) - 1}, each once.")
    return ids


def shortened(value: Any) -> str:
    """A value as an error message shows it."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
