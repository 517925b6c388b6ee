"""What the benchmarks measure with: times that take turns, operations, memory, and what the machine gives."""

from __future__ import annotations

import platform
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping

import psutil
import torch
import transformers

# What makes a new view of a tensor launches nothing.
VIEWS = {
    "aten::" + name
    for name in (
        "alias as_strided chunk detach expand expand_as flatten lift_fresh narrow permute reshape select slice split "
        "split_with_sizes squeeze t transpose unbind unflatten unsqueeze view view_as _unsafe_view numpy_T matrix_H mT"
    ).split()
}


def machine() -> dict[str, object]:
    """Where the numbers come from."""
    return {
        "processor": _processor_name(),
        "cores": psutil.cpu_count(),
        "threads": torch.get_num_threads(),
        "memory_gb": round(psutil.virtual_memory().total / 2**30),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "date": time.strftime("%Y-%m-%d %H:%M"),
    }


def _processor_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.split(":")[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def take_turns(runs: Mapping[str, Callable[[], object]], num_rounds: int) -> dict[str, list[float]]:
    """Seconds of each, one after the other in every round, so that what else the machine does falls on all."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(num_rounds):
        for name, run in runs.items():
            times[name].append(seconds(run))
    return times


def ratio(slow: list[float], fast: list[float]) -> float:
    """Median of the ratios of neighbours."""
    return statistics.median(one / other for one, other in zip(slow, fast, strict=True))


def sgemm_rate(size: int = 2048) -> float:
    """GFLOP/s of a large product, the best of three: what the machine gives at this moment."""
    matrix = torch.randn(size, size)
    return 2 * size**3 / min(seconds(lambda: matrix @ matrix) for _ in range(3)) / 1e9


def count_operations(run: Callable[[], object]) -> int:
    """Operations launched: those that no other operation called, views left out."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        run()
    return sum(
        _is_operation(event) and event.name not in VIEWS and not _has_operation_above(event)
        for event in profile.events()
    )


def _is_operation(event: torch.autograd.profiler_util.FunctionEvent) -> bool:
    return event.name.startswith(("aten::", "mkldnn::"))


def _has_operation_above(event: torch.autograd.profiler_util.FunctionEvent) -> bool:
    parent = event.cpu_parent
    while parent is not None and not _is_operation(parent):
        parent = parent.cpu_parent
    return parent is not None


def in_fresh_process(*arguments: str) -> float:
    """The number that this script prints last when it is called with more arguments, as memory is not given back."""
    command = [sys.executable, *sys.argv, *arguments]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def peak_memory(run: Callable[[], object]) -> float:
    """MB that `run` needs at its height, above what is there before it."""
    process, done = psutil.Process(), threading.Event()
    seen = [process.memory_info().rss]

    def watch() -> None:
        while not done.wait(0.002):
            seen.append(process.memory_info().rss)

    watcher = threading.Thread(target=watch)
    watcher.start()
    run()
    done.set()
    watcher.join()
    return (max(seen) - seen[0]) / 2**20
