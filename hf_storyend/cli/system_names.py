"""What systems are called when only the files of their endings are named."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def names_of_files(paths: Sequence[Path]) -> list[str]:
    """
    The names of the files or, where two have the same, of the nearest directories above them that all differ:
    `seq2seq/test/endings.jsonl` and `ie/test/endings.jsonl` are `seq2seq` and `ie`.
    """
    above = [(path.stem, *(folder.name for folder in path.resolve().parents)) for path in paths]
    for names in zip(*above, strict=False):
        if len(set(names)) == len(paths) and all(names):
            return list(names)
    return [path.stem for path in paths]
