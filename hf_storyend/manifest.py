"""
Manifests: what this program wrote into a directory, with checksums.

`manifest.json` has the `kind` of the directory, the SHA-256 of all its `files` by their paths, and what else the
writer says `about` it. A directory is complete if all its files match.
"""

from __future__ import annotations

import json
import re
from pathlib import Path, PurePosixPath
from typing import Any

from .files import file_digest

MANIFEST = "manifest.json"
_DIGEST = re.compile(r"[0-9a-f]{64}")


class ManifestError(ValueError):
    """A directory has no manifest, or one that is no manifest."""


def write_manifest(folder: Path, kind: str, **about: Any) -> None:
    """Write the manifest of all files of a directory, sub-folders included."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    files = {path.relative_to(folder).as_posix(): file_digest(path) for path in paths if path != folder / MANIFEST}
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


def _problem(path: Path, digest: str) -> str | None:
    try:
        return None if file_digest(path) == digest else "differs from what was written"
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"can't be read: {error}"


def _is_entry(name: str, digest: Any) -> bool:
    path = PurePosixPath(name)
    is_inside = bool(name) and not path.is_absolute() and ".." not in path.parts and "\\" not in name
    return is_inside and isinstance(digest, str) and bool(_DIGEST.fullmatch(digest))
