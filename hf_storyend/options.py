"""Options of commands: dataclass fields that carry their own help, shared by Python and the command line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any


def option(default: Any, help: str, *, positional: bool = False, factory: Callable[[], Any] | None = None) -> Any:
    """
    Declare a field of an options dataclass.

    Args:
        default: Default value; ignored if there is a `factory`.
        help: One line for `--help`; it says what the option does and what the default means.
        positional: Whether the command line takes it as an argument instead of `--name`.
        factory: Makes the default where it is mutable.
    """
    metadata = {"help": help, "positional": positional}
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
