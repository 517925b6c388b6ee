"""Options of commands: dataclass fields that carry their own help, shared by Python and the command line."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import MISSING, field, fields
from typing import Any, Literal

# Names of `PRESETS` in `modeling/decoding.py`, which commands can't import before torch is needed.
DecodingPreset = Literal["readers", "paper"]
# As the default of an option: it must be given.
REQUIRED: Any = MISSING
# Longest story of commands and demo, unless their options say otherwise: far beyond any of the corpus.
MAX_SENTENCES, MAX_SENTENCE_LENGTH = 50, 500


def option(
    default: Any,
    help: str,
    *,
    positional: bool = False,
    factory: Callable[[], Any] | None = None,
    group: str | None = None,
    flag: str | None = None,
    metavar: str | None = None,
) -> Any:
    """
    Declare a field of an options dataclass.

    Args:
        default: Default value, or `REQUIRED`; ignored if there is a `factory`.
        help: One line for `--help`; it says what the option does and what the default means.
        positional: Whether the command line takes it as an argument instead of `--name`.
        factory: Makes the default where it is mutable.
        group: Title under which `--help` lists the option.
        flag: Spelling on the command line, without hyphens, where it is not that of the field.
        metavar: Placeholder of the value in `--help`.
    """
    metadata = {"help": help, "positional": positional, "group": group, "flag": flag, "metavar": metavar}
    if factory is not None:
        return field(default_factory=factory, metadata=metadata)
    return field(default=default, metadata=metadata)


def check_at_least(options: Any, smallest: float, *names: str, optional: bool = False) -> None:
    """Refuse options that are not whole numbers of at least `smallest`; with `optional`, None is allowed."""
    for name in names:
        value = getattr(options, name)
        if value is None and optional:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < smallest:
            raise ValueError(f"`{name}` must be a whole number of at least {smallest}; got {value!r}.")


def check_finite_numbers(options: Any) -> None:
    """Refuse NaN and infinity in every option that is a fraction."""
    for entry in fields(options):
        value = getattr(options, entry.name)
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"`{entry.name}` must be a finite number; got {value}.")
