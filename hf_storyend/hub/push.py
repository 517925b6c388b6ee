"""Push a model directory to the Hub, in one commit or not at all."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, RepoFile, get_token
from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError
from huggingface_hub.utils import sha
from safetensors import SafetensorError
from safetensors.torch import load_file

from ..files import file_digest
from ..modeling import (
    IncrementalEncoderConfig,
    IncrementalEncoderForEndingGeneration,
    IncrementalEncoderTokenizer,
)
from .card import card_of
from .errors import HubError, friendly_errors
from .verify_code import code_files_of, compare_code, is_outside

_REQUIRED = ("config.json", "generation_config.json", "tokenizer_config.json")
_WEIGHTS, _WEIGHTS_INDEX = "model.safetensors", "model.safetensors.index.json"
_OPTIONAL = ("added_tokens.json", "special_tokens_map.json", "README.md", ".eval_results/storyend.yaml", "curves.png")
# What a card is made from; read, not pushed.
_CARD_SOURCES = ("metrics.json", "evaluation.json", "evaluations.json", "model_index.yaml", "trainer_state.json")
_SHARD = re.compile(r"model[\w.-]*\.safetensors", re.ASCII)
# Code and weights: a push deletes those that the model directory no longer has.
_REPLACED = re.compile(r"[^/]+\.py|model[^/]*\.safetensors|model\.safetensors\.index\.json")
_COMMIT_MESSAGE = "Push with hf_storyend"
# Seconds before the second, third and fourth attempt.
_RETRY_DELAYS = (1, 4, 10)

Content = Path | bytes
Result = TypeVar("Result")


@dataclass(frozen=True)
class PushPlan:
    """
    What a push would do.

    Args:
        repo_id: The repository, with its owner.
        revision: The branch of the commit.
        has_repo: Whether the repository exists.
        parent: The commit that the directory was compared with, if the branch exists.
        new, changed: Content by path in the repository.
        removed: Code and weights in the repository that the directory does not have.
        unchanged: Files that are identical in the repository.
        is_compared: False if the Hub was out of reach: then `new` has all files of the directory.
    """

    repo_id: str
    revision: str
    has_repo: bool
    parent: str | None
    new: dict[str, Content]
    changed: dict[str, Content]
    removed: list[str]
    unchanged: list[str]
    is_compared: bool = True

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to push."""
        return not (self.new or self.changed or self.removed)


@dataclass(frozen=True)
class Push:
    """A finished push: its plan and the address of its commit, None if there was nothing to push."""

    plan: PushPlan
    commit_url: str | None


def plan_push(
    model: str | Path,
    repo_id: str,
    *,
    private: bool = False,
    revision: str = "main",
    allow_changed_code: bool = False,
    api: HfApi | None = None,
) -> PushPlan:
    """
    Compare a model directory with a repository, as `push` does with the same arguments, and write nothing.

    Out of reach of the Hub, the plan has all files that a push would consider, and `is_compared` is false.
    """
    api, folder = api or HfApi(), Path(model)
    files = _checked_files(folder, allow_changed_code)
    try:
        return _compare(folder, files, repo_id, private, revision, api)
    except HubError as error:
        if not error.is_unreachable:
            raise
    content = _with_card(folder, files, repo_id)
    return PushPlan(repo_id, revision, False, None, content, {}, [], [], is_compared=False)


def _compare(folder: Path, paths: dict[str, Path], repo_id: str, private: bool, revision: str, api: HfApi) -> PushPlan:
    repo_id = _with_owner(api, repo_id)
    files = _with_card(folder, paths, repo_id)
    has_repo, parent = _find(api, repo_id, revision, private)
    remote = _remote_files(api, repo_id, parent) if parent else {}
    same = {name for name, content in files.items() if name in remote and _is_same(content, remote[name])}
    return PushPlan(
        repo_id=repo_id,
        revision=revision,
        has_repo=has_repo,
        parent=parent,
        new={name: content for name, content in files.items() if name not in remote},
        changed={name: content for name, content in files.items() if name in remote and name not in same},
        removed=[name for name in remote if name not in files and _REPLACED.fullmatch(name)],
        unchanged=sorted(same),
    )


def push(
    model: str | Path,
    repo_id: str,
    *,
    private: bool = False,
    revision: str = "main",
    allow_changed_code: bool = False,
    api: HfApi | None = None,
) -> Push:
    """
    Push a model directory: code, weights, tokenizer, knowledge and card in one commit.

    If the repository has the same files, nothing happens. A push that fails leaves the repository unchanged (a new one
    exists, without the model) and can be repeated. Transient errors are retried three times.

    Args:
        model: Directory that `save_pretrained` or a training run wrote.
        repo_id: `owner/name`, or `name` for one of your own; created if it does not exist.
        private: Create it as private. An existing repository must be private already.
        revision: Branch of the commit; created from `main` if it does not exist.
        allow_changed_code: Push code that differs from that of the installed package.
        api: Client of the Hub; default: the one of HF_ENDPOINT, with the token of `hf auth login` or HF_TOKEN.
    """
    api, folder = api or HfApi(), Path(model)
    check_token(api)
    files = _checked_files(folder, allow_changed_code)

    def attempt() -> Push:
        # Compared again each time: the answer to a successful commit may have been lost.
        plan = _compare(folder, files, repo_id, private, revision, api)
        if plan.is_empty:
            return Push(plan, None)
        with friendly_errors(api, plan.repo_id):
            return Push(plan, _commit(api, plan, private))

    return retry(attempt)


def retry(attempt: Callable[[], Result]) -> Result:
    """Return what `attempt` returns; after a transient error it is called again, three times at most."""
    for delay in _RETRY_DELAYS:
        try:
            return attempt()
        except HubError as error:
            if not error.is_transient:
                raise
        time.sleep(delay)
    return attempt()


def _commit(api: HfApi, plan: PushPlan, private: bool) -> str:
    parent = plan.parent
    if not plan.has_repo:
        api.create_repo(plan.repo_id, private=private or None, exist_ok=True)
    if parent is None:
        if plan.revision != "main":
            api.create_branch(plan.repo_id, branch=plan.revision, exist_ok=True)
        parent = api.model_info(plan.repo_id, revision=plan.revision).sha
    commit = api.create_commit(
        plan.repo_id,
        list(_operations(plan)),
        commit_message=_COMMIT_MESSAGE,
        revision=plan.revision,
        # If anybody has committed since the comparison, the Hub refuses, and the comparison is repeated.
        parent_commit=parent,
    )
    return commit.commit_url


def _operations(plan: PushPlan) -> Iterator[CommitOperationAdd | CommitOperationDelete]:
    for name, content in (plan.new | plan.changed).items():
        yield CommitOperationAdd(name, content)
    for name in plan.removed:
        yield CommitOperationDelete(name)


def _checked_files(folder: Path, allow_changed_code: bool) -> dict[str, Path]:
    """Return the files to push, after a look at the code and after loading the weights."""
    files = model_files(folder)
    if allow_changed_code:
        # Whether they fit code that is not installed can't be said without running it.
        weights = [path for name, path in files.items() if name.endswith(".safetensors")]
        for path in weights:
            _check_tensors(path)
        return files
    _check_code(folder, files)
    IncrementalEncoderForEndingGeneration.from_pretrained(folder)
    IncrementalEncoderTokenizer.from_pretrained(folder)
    return files


def _check_tensors(path: Path) -> None:
    try:
        tensors = load_file(path)
    except SafetensorError as error:
        raise ValueError(f"{path} is no safetensors file: {error}.") from error
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            raise ValueError(f"{path} has `{name}` with values that are not finite.")


def _check_code(folder: Path, files: dict[str, Path]) -> None:
    check = compare_code(files)
    if check.is_identical:
        return
    names = ", ".join([*check.different, *check.missing, *check.foreign])
    raise ValueError(
        f"The code in {folder} is not that of the installed hf_storyend ({names}): load model and tokenizer and save "
        "them again, or give `allow_changed_code`."
    )


def _with_card(folder: Path, paths: dict[str, Path], repo_id: str) -> dict[str, Content]:
    return {**paths, "README.md": card_of(folder, repo_id).encode()}


def check_token(api: HfApi) -> None:
    """Refuse to go on without a token."""
    if not (api.token or get_token()):
        raise ValueError("There is no token to push with: log in with `hf auth login`, or set HF_TOKEN.")


def _with_owner(api: HfApi, repo_id: str) -> str:
    if "/" in repo_id:
        return repo_id
    check_token(api)
    with friendly_errors(api, repo_id):
        return f"{api.whoami()['name']}/{repo_id}"


def _find(api: HfApi, repo_id: str, revision: str, private: bool) -> tuple[bool, str | None]:
    """Return whether the repository exists, and the commit of its branch, if that exists."""
    with friendly_errors(api, repo_id):
        try:
            info = api.model_info(repo_id)
        except RepositoryNotFoundError:
            return False, None
        if private and not info.private:
            raise ValueError(
                f"`{repo_id}` exists and is public: make it private on the Hub, or push without `private`."
            )
        try:
            return True, api.model_info(repo_id, revision=revision).sha
        except RevisionNotFoundError:
            return True, None


def _remote_files(api: HfApi, repo_id: str, commit: str) -> dict[str, RepoFile]:
    with friendly_errors(api, repo_id):
        entries = api.list_repo_tree(repo_id, recursive=True, revision=commit)
        return {entry.path: entry for entry in entries if isinstance(entry, RepoFile)}


def _is_same(content: Content, remote: RepoFile) -> bool:
    if remote.lfs is not None:
        return isinstance(content, Path) and file_digest(content) == remote.lfs.sha256
    data = content.read_bytes() if isinstance(content, Path) else content
    return sha.git_hash(data) == remote.blob_id


def model_files(folder: Path) -> dict[str, Path]:
    """
    Return the files to push by their paths in the repository.

    Nothing else of the directory is pushed: checkpoints, logs and generated endings hold sentences of the corpus. A
    link to a file outside the directory is an error, except into the cache of the Hub that the directory is part of.
    """
    for path in (folder / "config.json", folder / "tokenizer_config.json", folder / _WEIGHTS_INDEX):
        _check_inside(folder, path)
    config = _read_config(folder)
    names = [*_REQUIRED, *IncrementalEncoderTokenizer.vocab_files_names.values(), *_weight_files(folder)]
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise ValueError(
            f"{folder} has no {', '.join(missing)}: save model and tokenizer there with `save_pretrained`."
        )
    names += [name for name in _OPTIONAL if (folder / name).is_file()]
    code = code_files_of(folder, config, _read_json(folder / "tokenizer_config.json"))
    files = {name: folder / name for name in sorted(names)} | code
    for path in (*files.values(), *(folder / name for name in _CARD_SOURCES)):
        _check_inside(folder, path)
    return files


def _check_inside(folder: Path, path: Path) -> None:
    """Refuse what lies elsewhere: whoever made the directory may have made links to anything."""
    if is_outside(folder, path):
        raise ValueError(
            f"{path} is a link to {path.resolve()}, outside {folder}: put a copy of the file in its place."
        )


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    if not path.is_file():
        raise ValueError(f"`{folder}` is no model: it has no config.json.")
    config = _read_json(path)
    model_type = config.get("model_type")
    if model_type != IncrementalEncoderConfig.model_type:
        raise ValueError(
            f"{path}: `model_type` must be '{IncrementalEncoderConfig.model_type}'; got {model_type!r}. "
            "Only models of this package can be pushed."
        )
    return config


def _weight_files(folder: Path) -> list[str]:
    if not (folder / _WEIGHTS_INDEX).is_file():
        return [_WEIGHTS]
    shards = _read_json(folder / _WEIGHTS_INDEX).get("weight_map")
    names = sorted(set(map(str, shards.values()))) if isinstance(shards, dict) else []
    foreign = [name for name in names if not _SHARD.fullmatch(name)]
    if foreign or not names:
        raise ValueError(
            f"{folder / _WEIGHTS_INDEX} must name files such as model-00001-of-00002.safetensors beside it in "
            f"`weight_map`; got {', '.join(foreign) or 'none'}."
        )
    if (folder / _WEIGHTS).is_file() and _WEIGHTS not in names:
        raise ValueError(
            f"{folder} has {_WEIGHTS} and {_WEIGHTS_INDEX} beside each other: delete the one that is not the model."
        )
    return [_WEIGHTS_INDEX, *names]


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is not JSON: {error}.") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} must hold a JSON object; got {type(content).__name__}.")
    return content
