"""Which release this code is of, and which versions of transformers it was written for."""

from __future__ import annotations

import re
import warnings

import torch
import transformers

RELEASE = "0.1.0"
# From the first one on, and below the second.
SUPPORTED_TRANSFORMERS = ("5.18.0", "6")


def made_with() -> dict[str, str]:
    """The versions that a model is saved with, for whoever loads it one day."""
    lowest, limit = SUPPORTED_TRANSFORMERS
    return {
        "hf_storyend": RELEASE,
        "transformers": transformers.__version__,
        "torch": str(torch.__version__),
        "supported_transformers": f">={lowest},<{limit}",
    }


def check_transformers() -> None:
    """
    Refuse a transformers that is too old to run this code, and warn of one that is newer than what it was tested with:
    that may well work.
    """
    lowest, limit = SUPPORTED_TRANSFORMERS
    version = transformers.__version__
    said = f"This model's code (hf_storyend {RELEASE}) is for transformers>={lowest},<{limit}; {version} is installed"
    if _numbers(version) < _numbers(lowest):
        raise ImportError(f'{said}, which is too old: pip install "transformers>={lowest},<{limit}".')
    if _numbers(version) >= _numbers(limit):
        warnings.warn(
            f"{said}, which it was never run with. If it fails or writes nonsense: "
            f'pip install "transformers>={lowest},<{limit}".',
            stacklevel=2,
        )


def _numbers(version: str) -> tuple[int, ...]:
    """5.18.1.dev0 -> (5, 18, 1)."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])
