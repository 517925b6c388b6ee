"""Lazy exports: a package names what it offers and imports it on first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any


def lazy_exports(
    package: str, exports: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """
    Return `__getattr__`, `__dir__` and `__all__` for a package whose names live in its submodules.

    A name is looked up once and then kept. It may be that of its module, as in `{"push": ".push"}`.

    Args:
        package: `__name__` of the package.
        exports: Module of each public name, relative to the package: `{"train": ".run"}`.
    """
    module = sys.modules[package]

    class LazyPackage(ModuleType):
        def __setattr__(self, name: str, value: Any) -> None:
            # Importing a submodule binds it in its package; an exported name takes precedence.
            if not (isinstance(value, ModuleType) and name in exports):
                super().__setattr__(name, value)

    def __getattr__(name: str) -> Any:
        if name not in exports:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(exports[name], package), name)
        setattr(module, name, value)
        return value

    module.__class__ = LazyPackage
    return __getattr__, lambda: sorted(exports), sorted(exports)
