"""
Manifests: what this program wrote into a directory, with checksums.

`manifest.json` has the `kind` of the directory, the SHA-256 of all its `files` by their paths, and what else the
writer says `about` it. A directory is complete if all its files match.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from .files import file_digest, find_leftovers, sync, sync_tree, temporary_sibling

MANIFEST = "manifest.json"
# Where a comparison has the runs of its rows.
RUNS = "systems"
_PART_OF_RUN = re.compile(r"best|checkpoint-\d+(\.damaged-\d+)?")
_DIGEST = re.compile(r"[0-9a-f]{64}")


class ManifestError(ValueError):
    """A directory has no manifest, or one that is no manifest."""


def write_manifest(folder: Path, kind: str, **about: Any) -> None:
    """Write the manifest of all files of a directory, sub-folders included, but for the card, which people edit."""
    left_out = (folder / MANIFEST, folder / "README.md")
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path not in left_out)
    files = {path.relative_to(folder).as_posix(): file_digest(path) for path in paths}
    text = json.dumps({"kind": kind, "about": about, "files": files}, indent=1, ensure_ascii=False)
    (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return a manifest; its files lie in the directory, whoever wrote it."""
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ManifestError(f"{path} can't be read: {error}") from error
    files = manifest.get("files") if isinstance(manifest, dict) else None
    if not isinstance(files, dict) or not all(map(_is_entry, files, files.values())):
        raise ManifestError(f"{path} is no manifest: `files` must have a SHA-256 by path within the directory.")
    # Checkpoints of earlier versions have files alone.
    about = manifest.get("about")
    return {
        "kind": manifest.get("kind", "checkpoint"),
        "about": about if isinstance(about, dict) else {},
        "files": files,
    }


def find_damage(folder: Path) -> list[str]:
    """Return the files of a manifest that are missing or differ from what was written, each with what is wrong."""
    return [
        f"{name} {problem}"
        for name, digest in read_manifest(folder)["files"].items()
        if (problem := _problem(folder / name, digest))
    ]


def is_complete(folder: Path) -> bool:
    """Whether a directory has a manifest that all its files match."""
    try:
        return not find_damage(folder)
    except ManifestError:
        return False


@dataclass(frozen=True)
class Verification:
    """
    What became of a directory since it was written.

    Args:
        path: The directory.
        kind: What it is: `model`, `best model`, `checkpoint` or `prepared data`; None without a readable manifest.
        num_files: Files in its manifest.
        damage: What is wrong with which file.
        added: Files that the manifest does not list; of a model, which may lie among other files, none are looked for.
    """

    path: str
    kind: str | None
    num_files: int = 0
    damage: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)


def verify(directory: str | Path) -> list[Verification]:
    """
    Compare directories that this program wrote with their manifests: one, a training run with all that is in it, or a
    comparison with all of its runs.

    Raises:
        ValueError: If there is none.
    """
    root = Path(directory)
    runs = sorted(path for path in (root / RUNS).glob("*") if path.is_dir())
    verified = [found for run in (root, *runs) for found in _verify_run(run)]
    if not verified:
        raise ValueError(
            f"{root} has no {MANIFEST}: only what training and `storyend prepare` write can be verified, not what "
            "`save_pretrained` or an earlier version wrote."
        )
    return verified


def _verify_run(root: Path) -> list[Verification]:
    folders = sorted(path for path in root.glob("*") if path.is_dir() and _PART_OF_RUN.fullmatch(path.name))
    if (root / MANIFEST).is_file():
        folders.insert(0, root)
    verified = [_verify(folder) for folder in folders]
    for interrupted in find_leftovers(root, ".+", "complete") if folders else ():
        problem = "a save was interrupted: start the same training command again, which finishes it"
        verified.append(Verification(str(interrupted), None, damage=[problem]))
    return verified


def _verify(folder: Path) -> Verification:
    try:
        manifest = read_manifest(folder)
    except ManifestError as error:
        return Verification(str(folder), None, damage=[str(error)])
    added: list[str] = []
    if manifest["kind"] != "model":
        names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
        added = sorted(names - {MANIFEST, *manifest["files"]})
    return Verification(str(folder), manifest["kind"], len(manifest["files"]), find_damage(folder), added)


def recover_directory(target: Path) -> None:
    """
    Undo what a crash did to a directory that was being replaced.

    Between two renames there is only the complete new directory, or the old one, under a temporary name. Nobody else
    may be writing `target`.
    """
    if os.path.lexists(target) or not target.parent.is_dir():
        return
    for suffix in ("partial", "old"):
        for path in find_leftovers(target.parent, re.escape(target.name), suffix):
            if is_complete(path):
                os.rename(path, target)
                sync(target.parent)
                return


def publish_files(folder: Path, directory: Path) -> None:
    """
    Move all files of a directory with a manifest into another one, durably, all of them or none.

    Args:
        folder: Directory without sub-folders, in `directory`, whose name `temporary_sibling` made.
        directory: Where the files go; files of the same names are replaced.
    """
    sync_tree(folder)
    complete = folder.with_suffix(".complete")
    os.rename(folder, complete)
    sync(directory)
    _finish_publishing(complete, directory)


def recover_published_files(directory: Path, names: str) -> None:
    """Finish `publish_files` where a crash has interrupted it."""
    for complete in find_leftovers(directory, names, "complete"):
        if is_complete(complete):
            _finish_publishing(complete, directory)


def _finish_publishing(complete: Path, directory: Path) -> None:
    for path in sorted(complete.iterdir()):
        temporary = temporary_sibling(directory / complete.name.split(".")[1], "partial")
        try:
            _link_or_copy(path, temporary)
            os.replace(temporary, directory / path.name)
        finally:
            temporary.unlink(missing_ok=True)
    sync(directory)
    shutil.rmtree(complete)


def _link_or_copy(path: Path, other: Path) -> None:
    try:
        os.link(path, other)
    except OSError:
        # Not every file system has hard links.
        shutil.copyfile(path, other)
        sync(other)


def _problem(path: Path, digest: str) -> str | None:
    try:
        if path.exists() and not path.is_file():
            # Reading a pipe would wait for ever.
            return "is no file"
        return None if file_digest(path) == digest else "differs from what was written"
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"can't be read: {error}"


def _is_entry(name: str, digest: Any) -> bool:
    path = PurePosixPath(name)
    is_inside = bool(name) and not path.is_absolute() and ".." not in path.parts and "\\" not in name
    return is_inside and isinstance(digest, str) and bool(_DIGEST.fullmatch(digest))
