"""Run a function in several processes that start at the same time."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.synchronize import Barrier

import pytest

_TIMEOUT = 600


def run_together(work: Callable[..., None], *arguments: tuple) -> None:
    """Start one process for each tuple of arguments, all at once, and check that all succeed."""
    if "fork" not in multiprocessing.get_all_start_methods():
        pytest.skip("processes can't be forked here")
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(len(arguments))
    processes = [context.Process(target=_wait_and_work, args=(barrier, work, values)) for values in arguments]
    for process in processes:
        process.start()
    for process in processes:
        process.join(_TIMEOUT)
    assert [process.exitcode for process in processes] == [0] * len(arguments)


def _wait_and_work(barrier: Barrier, work: Callable[..., None], arguments: tuple) -> None:
    barrier.wait()
    work(*arguments)
