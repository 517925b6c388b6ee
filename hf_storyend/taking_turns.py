"""Processes that would write the same wait for each other, so that the later ones find what the first has written."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import datasets
from filelock import BaseFileLock, FileLock


def one_at_a_time(target: Path) -> BaseFileLock:
    """
    A block that only one process of the machine runs at a time for the same `target`. The lock ends with the process,
    however that ends, and lies in the cache of `datasets`: nothing is left beside the target.
    """
    locks = Path(datasets.config.HF_DATASETS_CACHE) / "hf_storyend" / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    name = hashlib.sha256(os.fsencode(target.resolve())).hexdigest()
    return FileLock(locks / f"{name}.lock")
