"""Lazy exports: a package names what it offers and imports it on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_exports(
    package: str, exports: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """
    Return `__getattr__`, `__dir__` and `__all__` for a package whose names live in its submodules.

    Args:
        package: `__name__` of the package.
        exports: Module of each public name, relative to the package: `{"train": ".run"}`.
    """

    def __getattr__(name: str) -> Any:
        if name not in exports:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(exports[name], package), name)

    return __getattr__, lambda: sorted(exports), sorted(exports)
