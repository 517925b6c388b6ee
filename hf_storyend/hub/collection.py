"""Push all models of a comparison to the Hub, each to a repository of its own, and collect them on one page."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from huggingface_hub import Collection, HfApi

from .errors import HubError, friendly_errors
from .push import Push, PushPlan, check_token, plan_push, push, retry

TITLE = "Story ending generation: systems under one budget"
_DESCRIPTION = "The systems of Guan, Wang and Huang (AAAI 2019) and more, trained alike with hf_storyend."
_PREFIX = "story-ending-"


@dataclass(frozen=True)
class CollectionItem:
    """
    A model of a comparison.

    Args:
        folder: Its directory.
        repo_id: Its repository.
        note: What the collection says of it.
    """

    folder: Path
    repo_id: str
    note: str


@dataclass(frozen=True)
class CollectionPlan:
    """
    What pushing a comparison would do.

    Args:
        owner: Owner of the collection and of the repositories.
        title: Title of the collection.
        address: Address of the collection; None if it does not exist, or if the Hub was out of reach.
        plans: What would be pushed of each model.
        missing: Repositories that the collection does not have yet.
    """

    owner: str
    title: str
    address: str | None
    plans: list[PushPlan]
    missing: list[str]


@dataclass(frozen=True)
class CollectionPush:
    """A finished push of a comparison: the address of the collection, and the push of each model."""

    address: str
    pushes: list[Push]


def find_items(directory: str | Path, owner: str) -> list[CollectionItem]:
    """Return the models of a comparison, in the order of its table."""
    root = Path(directory)
    try:
        comparison = json.loads((root / "comparison.json").read_text(encoding="utf-8"))
        rows, split = comparison["systems"], comparison["split"]
        found = [(name, _describe(row, split)) for name, row in rows.items()]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(f"{root} holds no comparison: `storyend compare --output_dir {root}` makes one.") from None
    if not found:
        raise ValueError(f"The comparison in {root} has no finished row.")
    return [CollectionItem(root / "systems" / name, f"{owner}/{_PREFIX}{name}", note) for name, note in found]


def plan_collection(
    directory: str | Path,
    owner: str,
    *,
    private: bool = False,
    allow_changed_code: bool = False,
    api: HfApi | None = None,
) -> CollectionPlan:
    """Compare the models of a comparison with their repositories and their collection, and write nothing."""
    api, items = api or HfApi(), find_items(directory, owner)
    plans = [_plan(item, private, allow_changed_code, api) for item in items]
    try:
        collection = _find_collection(api, owner)
    except HubError as error:
        if not error.is_unreachable:
            raise
        collection = None
    there = _item_ids(collection) if collection else set()
    missing = [item.repo_id for item in items if item.repo_id not in there]
    return CollectionPlan(owner, TITLE, collection.url if collection else None, plans, missing)


def push_collection(
    directory: str | Path,
    owner: str,
    *,
    private: bool = False,
    allow_changed_code: bool = False,
    api: HfApi | None = None,
) -> CollectionPush:
    """
    Push all finished models of a comparison, each as one commit, and put them into one collection.

    Every model is checked before the first is pushed. What is there already stays: the same call finishes one that has
    failed.

    Args:
        directory: Directory of the comparison.
        owner: User or organisation that owns the repositories, `OWNER/story-ending-ROW`, and the collection.
        private: Create repositories and collection as private.
        allow_changed_code: Push code that differs from that of the installed package.
        api: Client of the Hub; default: the one of HF_ENDPOINT, with the token of `hf auth login` or HF_TOKEN.
    """
    api, items = api or HfApi(), find_items(directory, owner)
    check_token(api)
    for item in items:
        _plan(item, private, allow_changed_code, api)
    pushes = [
        push(item.folder, item.repo_id, private=private, allow_changed_code=allow_changed_code, api=api)
        for item in items
    ]
    return CollectionPush(retry(lambda: _collect(api, items, owner, private)), pushes)


def _plan(item: CollectionItem, private: bool, allow_changed_code: bool, api: HfApi) -> PushPlan:
    return plan_push(item.folder, item.repo_id, private=private, allow_changed_code=allow_changed_code, api=api)


def _collect(api: HfApi, items: list[CollectionItem], owner: str, private: bool) -> str:
    """Create the collection, or find it, and add what it lacks; returns its address."""
    collection = _find_collection(api, owner)
    with friendly_errors(api, f"{owner}: {TITLE}"):
        if collection is None:
            collection = api.create_collection(
                TITLE, namespace=owner, description=_DESCRIPTION, private=private, exists_ok=True
            )
        there = _item_ids(collection)
        for item in items:
            if item.repo_id not in there:
                api.add_collection_item(collection.slug, item.repo_id, "model", note=item.note, exists_ok=True)
    return collection.url


def _find_collection(api: HfApi, owner: str) -> Collection | None:
    with friendly_errors(api, f"{owner}: {TITLE}"):
        for found in api.list_collections(owner=owner):
            if found.title == TITLE:
                # The list has only the first items of each.
                return api.get_collection(found.slug)
    return None


def _item_ids(collection: Collection) -> set[str]:
    return {item.item_id for item in collection.items}


def _describe(row: dict[str, Any], split: str) -> str:
    metrics = row["metrics"]
    return (
        f"{row['title']}: perplexity {metrics['perplexity']:.2f}, BLEU-1 {metrics['bleu_1']:.2f}, "
        f"BLEU-2 {metrics['bleu_2']:.2f} ({split})"
    )
