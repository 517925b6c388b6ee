"""The code that travels with a model, and whether it is that of the installed package."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi, get_token
from huggingface_hub.errors import HfHubHTTPError, HTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled
from transformers.dynamic_module_utils import get_relative_import_files

from .. import modeling


class HubRefusedError(OSError):
    """The Hub could not be reached or did not do what it was asked for; `is_passing` if trying again may help."""

    def __init__(self, message: str, is_passing: bool = False):
        super().__init__(message)
        self.is_passing = is_passing


@contextmanager
def in_a_sentence(api: HfApi, repo_id: str) -> Iterator[None]:
    """
    Turn the errors of `huggingface_hub` into one sentence. The original error is not chained: its request carries the
    token, which debuggers and error reporters would print.
    """
    try:
        yield
    except (HTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled) as error:
        raise _refusal(error, api, repo_id) from None
    except RuntimeError as error:
        # So wrapped by huggingface_hub where several files are uploaded at once.
        if not isinstance(error.__cause__, (HTTPError, OSError)):
            raise
        raise _refusal(error.__cause__, api, repo_id) from None


def _refusal(error: BaseException, api: HfApi, repo_id: str) -> HubRefusedError:
    if isinstance(error, OfflineModeIsEnabled):
        return HubRefusedError(f"`{repo_id}` can't be reached: the environment sets HF_HUB_OFFLINE; unset it.")
    if not isinstance(error, HfHubHTTPError):
        name = type(error).__name__
        return HubRefusedError(
            f"{api.endpoint} can't be reached ({name}): check the network and HF_ENDPOINT, then try again.",
            is_passing=True,
        )
    status = error.response.status_code
    if status >= 500 or status in (409, 412, 429):
        return HubRefusedError(
            f"{api.endpoint} answered with error {status}; `{repo_id}` is as it was. Try again later.", is_passing=True
        )
    return HubRefusedError(_refused_for_good(status, api, repo_id, error.server_message))


def _refused_for_good(status: int, api: HfApi, repo_id: str, server_message: str | None) -> str:
    if status == 401:
        return f"{api.endpoint} does not accept the token: log in anew with `hf auth login`, or mend HF_TOKEN."
    if status == 403:
        return (
            f"The token may not write to `{repo_id}`: give a repository of your own or of your organisation, "
            "or a token with the right to write."
        )
    if status == 404:
        return f"{api.endpoint} has no `{repo_id}`, or the token may not see it, or it has no such revision."
    told = _without_token(server_message or "no reason given", api)
    return f"{api.endpoint} refused `{repo_id}` with error {status}: {told}"


def _without_token(text: str, api: HfApi) -> str:
    token = api.token if isinstance(api.token, str) else get_token()
    return text.replace(token, "<token>") if token else text


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
