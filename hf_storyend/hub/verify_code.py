"""What transformers could run of a model, compared with what the installed package writes."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi, RepoFile
from transformers.dynamic_module_utils import get_relative_import_files

from .. import modeling
from ..modeling import (
    IncrementalEncoderConfig,
    IncrementalEncoderForEndingGeneration,
    IncrementalEncoderTokenizer,
)
from ..modeling.pipeline_incremental_encoder import CUSTOM_PIPELINES
from .errors import HubError, friendly_errors

# Files of words, triples and weights: read as data, and large.
_DATA_FILES = (*IncrementalEncoderTokenizer.vocab_files_names.values(), "model.safetensors.index.json")
# Settings by which transformers finds code, classes, models or files to read instead of those beside them.
_FOLLOWED = (
    *("model_type", "tokenizer_class", "processor_class", "chat_template"),
    *("auto_map", "custom_pipelines", "custom_generate", "kernel_config", "quantization_config"),
    *("configuration_files", "fast_tokenizer_files", "transformers_weights", "base_model_name_or_path"),
    *("audio_tokenizer", "init_inputs", *IncrementalEncoderTokenizer.vocab_files_names),
)
# Files that the package never writes and that name a model to load, or code, in ways of their own.
_FOREIGN_FILES = ("adapter_config.json",)
# Attention and experts may be kernels on the Hub; these are built in.
_BUILT_IN = (None, "eager", "sdpa", "fused")


@dataclass
class CodeCheck:
    """
    Result of a comparison. Settings are named with their file, as in "config.json: `auto_map`".

    Args:
        identical: Files that are, byte for byte, those of the installed package.
        settings: Settings that name exactly the code that the installed package writes there.
        different: Files with other content, and settings that name other code.
        missing: Files and settings of the installed package that the model lacks.
        foreign: Files that the installed package does not have, and settings that it never writes.
        library_versions: Versions that the model was saved with, by library.
        revision: Commit on the Hub that was compared; None for a local directory.
    """

    identical: list[str] = field(default_factory=list)
    settings: list[str] = field(default_factory=list)
    different: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    library_versions: dict[str, str] = field(default_factory=dict)
    revision: str | None = None

    @property
    def is_identical(self) -> bool:
        """Whether everything that transformers could run is exactly what the installed package writes."""
        return not (self.different or self.missing or self.foreign)


def check_code(model: str | Path, revision: str | None = None, api: HfApi | None = None) -> CodeCheck:
    """
    Compare what transformers could run or follow in a model with what the installed package writes.

    That is every Python file, in sub-folders too, and every setting, of any JSON file, that names code, a kernel or
    another repository. A model on the Hub is compared at one commit, as the Hub has it now: out of reach of the Hub,
    the check fails, because a cache may be old or incomplete.

    Args:
        model: Model directory or Hub name.
        revision: Branch, tag or commit of the repository; a directory has none.
        api: Client of the Hub; default: the one of HF_ENDPOINT.
    """
    commit = None
    if Path(model).is_dir():
        if revision is not None:
            raise ValueError(f"`revision` is for models on the Hub; `{model}` is a directory here.")
        folder = Path(model)
    else:
        folder, commit = _download_code(str(model), revision, api or HfApi())
    config = folder / "config.json"
    if not config.is_file():
        raise ValueError(f"`{model}` is no model: it has no config.json.")
    files, unreadable = _files_in(folder)
    check = compare_code(files)
    check.foreign += unreadable
    check.library_versions, check.revision = _library_versions(config), commit
    return check


def compare_code(files: dict[str, Path]) -> CodeCheck:
    """Compare code and settings among files, by their paths in a model, with what the installed package writes."""
    installed = installed_code()
    check = CodeCheck(missing=[name for name in installed if name not in files])
    for name, path in sorted(files.items()):
        if not _is_code(name):
            continue
        original = installed.get(path.name)
        if original is None:
            check.foreign.append(name)
        else:
            is_same = original.read_bytes() == path.read_bytes()
            (check.identical if is_same else check.different).append(name)
    _compare_settings(check, {name: path for name, path in files.items() if _is_settings(name)})
    return check


def _compare_settings(check: CodeCheck, files: dict[str, Path]) -> None:
    for file, written in _written_settings().items():
        found = _followed_settings(_read_json(files[file])) if file in files else {}
        check.missing += [_named(file, setting) for setting in written if setting not in found]
    for file, path in sorted(files.items()):
        if path.name.lower() in _FOREIGN_FILES:
            check.foreign.append(file)
        written = _written_settings().get(path.name, {})
        for setting, value in _followed_settings(_read_json(path)).items():
            if setting not in written:
                check.foreign.append(_named(file, setting))
            else:
                (check.settings if value == written[setting] else check.different).append(_named(file, setting))


def _written_settings() -> dict[str, dict[str, Any]]:
    """Return the settings that name code, as `save_pretrained` of model and tokenizer writes them, by file."""
    config, model, tokenizer = (
        f"{cls.__module__.rsplit('.', 1)[-1]}.{cls.__name__}"
        for cls in (IncrementalEncoderConfig, IncrementalEncoderForEndingGeneration, IncrementalEncoderTokenizer)
    )
    auto_map = {"AutoConfig": config, "AutoModel": model, "AutoModelForSeq2SeqLM": model}
    return {
        "config.json": {
            "model_type": IncrementalEncoderConfig.model_type,
            "auto_map": auto_map,
            "custom_pipelines": CUSTOM_PIPELINES,
        },
        "tokenizer_config.json": {
            "tokenizer_class": IncrementalEncoderTokenizer.__name__,
            "auto_map": {"AutoTokenizer": [tokenizer, None]},
        },
    }


def _followed_settings(content: Any) -> dict[str, Any]:
    """Return settings that name code, kernels, files or repositories, at any depth."""
    found: dict[str, Any] = {}
    waiting = [("", content)]
    while waiting:
        prefix, value = waiting.pop()
        entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, entry in entries:
            is_kernel = "_implementation" in str(key) and entry not in _BUILT_IN
            if (key in _FOLLOWED and entry) or is_kernel:
                found[f"{prefix}{key}"] = entry
            else:
                waiting.append((f"{prefix}{key}.", entry))
    return found


def _named(file: str, setting: str) -> str:
    return f"{file}: `{setting}`"


def _files_in(folder: Path) -> tuple[dict[str, Path], list[str]]:
    """
    Return all files by their paths, as transformers would open them, and what can't be looked at: links to code,
    settings and folders elsewhere, which others may change or which may be of any size, links to nothing, pipes.
    """
    found: dict[str, Path] = {}
    unreadable: list[str] = []
    seen, home = set(), folder.resolve()
    for root, folders, names in os.walk(folder, followlinks=True):
        seen.add(Path(root).resolve())
        paths = {name: Path(root, name).resolve() for name in folders}
        outside = [name for name, path in paths.items() if not path.is_relative_to(home)]
        unreadable += [Path(root, name).relative_to(folder).as_posix() for name in outside]
        folders[:] = [name for name in folders if name not in outside and paths[name] not in seen]
        for path in (Path(root, name) for name in names):
            name = path.relative_to(folder).as_posix()
            is_followed = _is_code(name) or _is_settings(name)
            if path.is_file() and not (is_followed and is_outside(folder, path)):
                found[name] = path
            else:
                unreadable.append(name)
    return found, unreadable


def is_outside(folder: Path, path: Path) -> bool:
    """Whether a path leads out of a model directory, and not into the cache of the Hub that it is part of."""
    target, home = path.resolve(), folder.resolve()
    is_cached = home.parent.name == "snapshots" and target.parent == home.parent.parent / "blobs"
    return not target.is_relative_to(home) and not is_cached


def _is_code(name: str) -> bool:
    """Templates of chats are programs, too, though in a sandbox."""
    return name.lower().endswith((".py", ".pyw", ".pyc", ".so", ".pyd", ".jinja"))


def _is_settings(name: str) -> bool:
    """Some file systems find a file by its name in capital letters, too."""
    return name.lower().endswith(".json") and name not in _DATA_FILES


def installed_code() -> dict[str, Path]:
    """Return the code files of the installed package, which `save_pretrained` copies, by name."""
    folder = Path(str(modeling.__file__)).parent
    return {path.name: path for path in sorted(folder.glob("*.py")) if path.name != "__init__.py"}


def code_files_of(folder: Path, config: dict[str, Any], tokenizer_config: dict[str, Any]) -> dict[str, Path]:
    """Return the modules that the two configurations name, and those that they import from beside them, by name."""
    names = [name.split(".")[0] + ".py" for name in _named_classes(config) + _named_classes(tokenizer_config)]
    if not names:
        raise ValueError(f"{folder / 'config.json'} has no `auto_map`: save the model again to add its code.")
    for name in names:
        if not name.removesuffix(".py").isidentifier():
            raise ValueError(f"{folder} names `{name}` as code: only files beside config.json can be a model's code.")
    files: dict[str, Path] = {}
    for name in names:
        try:
            imported = get_relative_import_files(folder / name)
        except FileNotFoundError as error:
            raise ValueError(f"{folder} has no {Path(error.filename).name}, a part of the model's code.") from error
        for path in (folder / name, *map(Path, imported)):
            files[path.name] = path
    return dict(sorted(files.items()))


def _named_classes(config: dict[str, Any]) -> list[str]:
    """Return `module.Class` of every entry in `auto_map` and `custom_pipelines`."""
    entries = [*(config.get("auto_map") or {}).values()]
    entries += [task["impl"] for task in (config.get("custom_pipelines") or {}).values()]
    flat = [name for entry in entries for name in (entry if isinstance(entry, list) else [entry])]
    return [name for name in flat if name]


def _download_code(repo_id: str, revision: str | None, api: HfApi) -> tuple[Path, str]:
    """Return a directory with code and settings of a repository, and the commit that they are of."""
    with friendly_errors(api, repo_id):
        # Asked first: a download falls back on the cache, whatever that holds, if the Hub is out of reach.
        info = api.model_info(repo_id, revision=revision)
        if info.sha is None:
            raise HubError(f"{api.endpoint} does not say which commit of `{repo_id}` it has.")
        # The tree, page by page: the files that `info` lists are not all of a large repository.
        entries = api.list_repo_tree(repo_id, recursive=True, revision=info.sha)
        names = [entry.path for entry in entries if isinstance(entry, RepoFile)]
        wanted = [name for name in names if _is_code(name) or _is_settings(name)]
        paths = {name: Path(api.hf_hub_download(repo_id, name, revision=info.sha)) for name in wanted}
    if "config.json" not in paths:
        raise ValueError(f"`{repo_id}` is no model: it has no config.json.")
    return paths["config.json"].parent, info.sha


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON: {error}.") from error


def _library_versions(path: Path) -> dict[str, str]:
    config = _read_json(path)
    if not isinstance(config, dict):
        return {}
    # `made_with` was its name in models of earlier versions.
    versions = config.get("library_versions") or config.get("made_with")
    return {str(name): str(number) for name, number in versions.items()} if isinstance(versions, dict) else {}
