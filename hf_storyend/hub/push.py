"""A model's directory to the Hub, in one commit or not at all."""

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

from ..files import file_digest
from ..modeling import IncrementalEncoderConfig, IncrementalEncoderTokenizer
from .card import PLACEHOLDER, card_of
from .verify_code import HubRefusedError, code_files_of, compare_code, in_a_sentence

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


MESSAGE = "Push with hf_storyend"
# Seconds before the second, third and fourth attempt.
WAITS = (1, 4, 10)

Content = Path | bytes
Result = TypeVar("Result")


@dataclass(frozen=True)
class PushPlan:
    """
    What a push would do.

    Args:
        repo_id: The repository, with its owner.
        branch: The branch that the commit goes to.
        has_repo: Whether the repository is there.
        parent: The commit that this was compared with, if the branch is there.
        new, changed: Content by path in the repository.
        removed: Code and weights of the repository that the directory does not have.
        unchanged: What is there already, byte for byte.
    """

    repo_id: str
    branch: str
    has_repo: bool
    parent: str | None
    new: dict[str, Content]
    changed: dict[str, Content]
    removed: list[str]
    unchanged: list[str]

    @property
    def is_empty(self) -> bool:
        """Whether all is there already."""
        return not (self.new or self.changed or self.removed)


@dataclass(frozen=True)
class Push:
    """What a push did: the plan it followed, and the address of its commit, None if there was nothing to do."""

    plan: PushPlan
    commit_url: str | None


def plan_push(
    folder: str | Path,
    repo_id: str,
    *,
    private: bool = False,
    branch: str = "main",
    allow_changed_code: bool = False,
    api: HfApi | None = None,
) -> PushPlan:
    """Compare a model's directory with a repository and write nothing anywhere; for the arguments see `push`."""
    api = api or HfApi()
    folder = Path(folder)
    files: dict[str, Content] = dict(model_files(folder))
    if not allow_changed_code:
        _check_code(folder, {name: path for name, path in model_files(folder).items() if name.endswith(".py")})
    repo_id = _with_owner(api, repo_id)
    files["README.md"] = card_of(folder).replace(PLACEHOLDER, repo_id).encode()
    has_repo, parent = _find(api, repo_id, branch, private)
    remote = _remote_files(api, repo_id, parent) if parent else {}
    same = {name for name, content in files.items() if name in remote and _is_same(content, remote[name])}
    return PushPlan(
        repo_id=repo_id,
        branch=branch,
        has_repo=has_repo,
        parent=parent,
        new={name: content for name, content in files.items() if name not in remote},
        changed={name: content for name, content in files.items() if name in remote and name not in same},
        removed=[name for name in remote if name not in files and is_replaced(name)],
        unchanged=sorted(same),
    )


def push(
    folder: str | Path,
    repo_id: str,
    *,
    private: bool = False,
    branch: str = "main",
    allow_changed_code: bool = False,
    api: HfApi | None = None,
) -> Push:
    """
    Push a model's directory: code, weights, tokenizer, knowledge and card in one commit. Where all is there already,
    nothing happens; where it fails, the repository is as it was before (a new one is there, without the model), and it
    can be repeated. What the Hub may be cured of is tried four times.

    Args:
        folder: What `save_pretrained` or a training run wrote.
        repo_id: `owner/name`, or `name` for one of your own; it is made if it is not there.
        private: Make it private. A repository that is there must be so already.
        branch: Where the commit goes; it is made from `main` if it is not there.
        allow_changed_code: Push code other than that of the installed package.
        api: The Hub to push to; by default the one of HF_ENDPOINT, with the token of `hf auth login` or HF_TOKEN.
    """
    api = api or HfApi()
    _check_token(api)

    def attempt() -> Push:
        # Compared anew each time: the answer to a commit that was made may have been lost.
        plan = plan_push(
            folder, repo_id, private=private, branch=branch, allow_changed_code=allow_changed_code, api=api
        )
        if plan.is_empty:
            return Push(plan, None)
        with in_a_sentence(api, plan.repo_id):
            return Push(plan, _commit(api, plan, private))

    return _repeated(attempt)


def _repeated(attempt: Callable[[], Result]) -> Result:
    for wait in WAITS:
        try:
            return attempt()
        except HubRefusedError as error:
            if not error.is_passing:
                raise
        time.sleep(wait)
    return attempt()


def _commit(api: HfApi, plan: PushPlan, private: bool) -> str:
    parent = plan.parent
    if not plan.has_repo:
        api.create_repo(plan.repo_id, private=private or None, exist_ok=True)
    if parent is None:
        if plan.branch != "main":
            api.create_branch(plan.repo_id, branch=plan.branch, exist_ok=True)
        parent = api.model_info(plan.repo_id, revision=plan.branch).sha
    commit = api.create_commit(
        plan.repo_id,
        list(_operations(plan)),
        commit_message=MESSAGE,
        revision=plan.branch,
        # If anybody has committed since the comparison, the Hub refuses and it is compared again.
        parent_commit=parent,
    )
    return commit.commit_url


def _operations(plan: PushPlan) -> Iterator[CommitOperationAdd | CommitOperationDelete]:
    for name, content in (plan.new | plan.changed).items():
        yield CommitOperationAdd(name, content)
    for name in plan.removed:
        yield CommitOperationDelete(name)


def _check_code(folder: Path, code: dict[str, Path]) -> None:
    check = compare_code(code)
    if check.is_identical:
        return
    names = ", ".join([*check.different, *check.missing, *check.foreign])
    raise ValueError(
        f"The code in {folder} is not that of the installed hf_storyend ({names}): load model and tokenizer and save "
        "them again with it, or allow changed code."
    )


def _check_token(api: HfApi) -> None:
    if not (api.token or get_token()):
        raise ValueError("There is no token to push with: log in with `hf auth login`, or set HF_TOKEN.")


def _with_owner(api: HfApi, repo_id: str) -> str:
    if "/" in repo_id:
        return repo_id
    _check_token(api)
    with in_a_sentence(api, repo_id):
        return f"{api.whoami()['name']}/{repo_id}"


def _find(api: HfApi, repo_id: str, branch: str, private: bool) -> tuple[bool, str | None]:
    """Whether the repository is there, and the commit that its branch is at, if that is there."""
    with in_a_sentence(api, repo_id):
        try:
            info = api.model_info(repo_id)
        except RepositoryNotFoundError:
            return False, None
        if private and not info.private:
            raise ValueError(
                f"`{repo_id}` is there and public: make it private on the Hub, or push without `private`."
            )
        try:
            return True, api.model_info(repo_id, revision=branch).sha
        except RevisionNotFoundError:
            return True, None


def _remote_files(api: HfApi, repo_id: str, commit: str) -> dict[str, RepoFile]:
    with in_a_sentence(api, repo_id):
        entries = api.list_repo_tree(repo_id, recursive=True, revision=commit)
        return {entry.path: entry for entry in entries if isinstance(entry, RepoFile)}


def _is_same(content: Content, remote: RepoFile) -> bool:
    if remote.lfs is not None:
        return isinstance(content, Path) and file_digest(content) == remote.lfs.sha256
    data = content.read_bytes() if isinstance(content, Path) else content
    return sha.git_hash(data) == remote.blob_id
