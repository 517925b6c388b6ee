"""Memory of a server: what the C library keeps after a request is given back."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache


def release_free_memory() -> None:
    """
    Return freed memory to the system, where the C library can (glibc).

    Every thread has a heap of its own, and a block in use keeps all that was freed below it: a server of many threads
    would grow with each request that needs more than those before it in the same thread.
    """
    trim = _find_trim()
    if trim is not None:
        trim(0)


@cache
def _find_trim() -> Callable[[int], int] | None:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None
