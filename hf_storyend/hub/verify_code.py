"""The code that travels with a model, compared with that of the installed package."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi
from transformers.dynamic_module_utils import get_relative_import_files

from .. import modeling
from .errors import friendly_errors


@dataclass
class CodeCheck:
    """
    Result of a comparison.

    Args:
        identical: Files that are, byte for byte, those of the installed package.
        different: Files with other content.
        missing: Files of the installed package that the model lacks.
        foreign: Files that the installed package does not have.
        library_versions: Versions that the model was saved with, by library.
    """

    identical: list[str] = field(default_factory=list)
    different: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    library_versions: dict[str, str] = field(default_factory=dict)

    @property
    def is_identical(self) -> bool:
        """Whether the files are exactly those of the installed package."""
        return not (self.different or self.missing or self.foreign)


def check_code(model: str | Path, revision: str | None = None, api: HfApi | None = None) -> CodeCheck:
    """
    Compare the code of a model with that of the installed package.

    Args:
        model: Model directory or Hub name.
        revision: Branch, tag or commit of the repository.
        api: Client of the Hub; default: the one of HF_ENDPOINT.
    """
    folder = Path(model) if Path(model).is_dir() else _download_code(str(model), revision, api or HfApi())
    config = folder / "config.json"
    if not config.is_file():
        raise ValueError(f"`{model}` is no model: it has no config.json.")
    check = compare_code({path.name: path for path in sorted(folder.glob("*.py"))})
    check.library_versions = _library_versions(config)
    return check


def compare_code(files: dict[str, Path]) -> CodeCheck:
    """Compare code files, by name, with those of the installed package."""
    installed = installed_code()
    check = CodeCheck(
        missing=[name for name in installed if name not in files],
        foreign=[name for name in files if name not in installed],
    )
    for name in sorted(installed.keys() & files.keys()):
        is_same = installed[name].read_bytes() == files[name].read_bytes()
        (check.identical if is_same else check.different).append(name)
    return check


def installed_code() -> dict[str, Path]:
    """Return the code files of the installed package, which `save_pretrained` copies, by name."""
    folder = Path(str(modeling.__file__)).parent
    return {path.name: path for path in sorted(folder.glob("*.py")) if path.name != "__init__.py"}


def code_files_of(folder: Path, config: dict[str, Any], tokenizer_config: dict[str, Any]) -> dict[str, Path]:
    """Return the modules that the two configurations name, and those that they import from beside them, by name."""
    names = [name.split(".")[0] + ".py" for name in _named_classes(config) + _named_classes(tokenizer_config)]
    if not names:
        raise ValueError(f"{folder / 'config.json'} has no `auto_map`: save the model again to add its code.")
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


def _download_code(repo_id: str, revision: str | None, api: HfApi) -> Path:
    with friendly_errors(api, repo_id):
        return Path(api.snapshot_download(repo_id, revision=revision, allow_patterns=["*.py", "config.json"]))


def _library_versions(path: Path) -> dict[str, str]:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON: {error}.") from error
    if not isinstance(config, dict):
        return {}
    # `made_with` was its name in models of earlier versions.
    versions = config.get("library_versions") or config.get("made_with")
    return {str(name): str(number) for name, number in versions.items()} if isinstance(versions, dict) else {}
