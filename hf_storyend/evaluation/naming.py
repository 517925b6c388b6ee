"""Names of systems that are known only by the files of their endings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def name_systems(paths: Sequence[Path]) -> list[str]:
    """
    Name systems after the files of their endings.

    Where files have the same name, systems are named after the nearest directories above that all differ:
    `seq2seq/test/endings.jsonl` and `ie/test/endings.jsonl` become `seq2seq` and `ie`.
    """
    levels = zip(*((path.stem, *(folder.name for folder in path.resolve().parents)) for path in paths), strict=False)
    for names in levels:
        if len(set(names)) == len(paths) and all(names):
            return list(names)
    return [path.stem for path in paths]
