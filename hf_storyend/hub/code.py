"""The code that travels with a model, and whether it is that of the installed package."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi
from transformers.dynamic_module_utils import get_relative_import_files

from .. import modeling
from .errors import in_a_sentence


@dataclass
class CodeCheck:
    """What a comparison found, by file names, and the versions that the model says it was made with."""

    identical: list[str] = field(default_factory=list)
    different: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    made_with: dict[str, str] = field(default_factory=dict)

    @property
    def is_identical(self) -> bool:
        """Whether every file is there, byte for byte, and no other."""
        return not (self.different or self.missing or self.foreign)


def installed_code() -> dict[str, Path]:
    """The code files of the installed package, which `save_pretrained` copies."""
    folder = Path(modeling.__file__).parent
    return {path.name: path for path in sorted(folder.glob("*.py")) if path.name != "__init__.py"}


def code_files_of(folder: Path, config: dict[str, Any], tokenizer_config: dict[str, Any]) -> dict[str, Path]:
    """The modules that the two configurations name, and what those import from beside them."""
    names = [name.split(".")[0] + ".py" for name in _named_classes(config) + _named_classes(tokenizer_config)]
    if not names:
        raise ValueError(f"{folder / 'config.json'} has no `auto_map`: save the model again to have its code there.")
    files: dict[str, Path] = {}
    for name in names:
        try:
            imported = get_relative_import_files(folder / name)
        except FileNotFoundError as error:
            raise ValueError(f"{folder} has no {Path(error.filename).name}, a part of the model's code.") from error
        for path in (folder / name, *map(Path, imported)):
            files[path.name] = path
    return dict(sorted(files.items()))


def check_code(model: str | Path, revision: str | None = None, api: HfApi | None = None) -> CodeCheck:
    """
    Compare the code of a model, a directory or a repository on the Hub, with that of the installed package.

    Args:
        model: A directory, or the id of a repository.
        revision: Branch, tag or commit of the repository.
        api: The Hub to ask, if not the usual one.
    """
    folder = Path(model) if Path(model).is_dir() else _download_code(str(model), revision, api or HfApi())
    config = folder / "config.json"
    if not config.is_file():
        raise ValueError(f"`{model}` is no model: it has no config.json.")
    check = compare_code({path.name: path for path in sorted(folder.glob("*.py"))})
    check.made_with = _made_with(config)
    return check


def compare_code(files: dict[str, Path]) -> CodeCheck:
    """Compare code files, by name, with those of the installed package."""
    installed = installed_code()
    check = CodeCheck(
        missing=[name for name in installed if name not in files],
        foreign=[name for name in files if name not in installed],
    )
    for name in installed.keys() & files.keys():
        is_same = installed[name].read_bytes() == files[name].read_bytes()
        (check.identical if is_same else check.different).append(name)
    check.identical.sort()
    check.different.sort()
    return check


def _download_code(repo_id: str, revision: str | None, api: HfApi) -> Path:
    with in_a_sentence(api, repo_id):
        return Path(api.snapshot_download(repo_id, revision=revision, allow_patterns=["*.py", "config.json"]))


def _made_with(path: Path) -> dict[str, str]:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON: {error}.") from error
    versions = config.get("made_with") if isinstance(config, dict) else None
    return {str(name): str(number) for name, number in versions.items()} if isinstance(versions, dict) else {}


def _named_classes(config: dict[str, Any]) -> list[str]:
    """`module.Class` of every entry in `auto_map` and `custom_pipelines`."""
    entries = [*(config.get("auto_map") or {}).values()]
    entries += [task["impl"] for task in (config.get("custom_pipelines") or {}).values()]
    flat = [name for entry in entries for name in (entry if isinstance(entry, list) else [entry])]
    return [name for name in flat if name]
