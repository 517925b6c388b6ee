"""Which file of a directory is which split, told by its name."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

from .paired_files import post_of_pair
from .story_formats import STORY_SUFFIXES, story_suffix

_SPLITS = ("train", "validation", "test")
_OTHER_NAMES = {"val": "validation", "valid": "validation", "dev": "validation"}


def canonical_split(name: str) -> str:
    """`val`, `valid` and `dev` are `validation`; any other name is kept."""
    return _OTHER_NAMES.get(name, name)


def find_split_files(directory: Path) -> dict[str, Path]:
    """
    The file of each split in a directory: `train.csv`, `val.jsonl.gz`, `test.post` with `test.response` ...

    Files with other names are left alone, and a warning says so where a name starts like that of a split. Two files
    for one split, or none at all, are an error: which ones are meant can then be said with a dict.
    """
    found: dict[str, Path] = {}
    candidates = [file for file in sorted(directory.iterdir()) if story_suffix(file) in STORY_SUFFIXES]
    for file in dict.fromkeys(map(post_of_pair, candidates)):
        split = canonical_split(_stem(file))
        if split not in _SPLITS:
            _warn_if_meant(file)
        elif split in found:
            raise ValueError(f"{directory}: both {found[split].name} and {file.name} are the {split} split. {_ADVICE}")
        else:
            found[split] = file
    if not found:
        names = ", ".join(file.name for file in candidates) or "nothing that could be stories"
        raise ValueError(f"{directory}: no file is called train, validation or test; there is {names}. {_ADVICE}")
    return {split: found[split] for split in _SPLITS if split in found}


_ADVICE = 'Name the files of each split instead: {"train": ["a.csv", "b.csv"], "test": "c.csv"}.'


def _stem(file: Path) -> str:
    return Path(file.name.removesuffix(".gz")).stem.lower()


def _warn_if_meant(file: Path) -> None:
    first_word = re.split(r"[\W_]", _stem(file), maxsplit=1)[0]
    if canonical_split(first_word) in _SPLITS:
        warnings.warn(f"{file} is left out: it is not called {first_word}. {_ADVICE}", stacklevel=5)
