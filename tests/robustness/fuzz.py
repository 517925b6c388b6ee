"""
Fuzz every reader with thousands of corrupted files: `cd tests && python -m robustness.fuzz --cases 10000`.

A case passes with a result, or with a `ValueError` or `OSError` that names the file. Anything else is a finding:
another exception, a crash, a minute of processor time, two gigabytes, or a file that was not there before. A case is
derived from its number alone: `--only NUMBER` runs one again.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import resource
import signal
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import datasets
from robustness.targets import TARGETS
from transformers.utils import logging

# Of the processor: a busy machine changes nothing.
CPU_SECONDS_A_CASE = 60
MEMORY = 2 << 30
# Workers need not import anything again.
_CONTEXT = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class Outcome:
    """What became of a case: `result`, `refused`, or a finding in words."""

    number: int
    target: str
    mutation: str
    kind: str
    message: str = ""

    @property
    def is_finding(self) -> bool:
        return self.kind not in ("result", "refused")


def run_cases(numbers: Sequence[int], seed: int = 0) -> list[Outcome]:
    """Run cases in a worker. If it dies, the case it was at is the finding, and another worker goes on."""
    outcomes: list[Outcome] = []
    while len(outcomes) < len(numbers):
        receiver, sender = _CONTEXT.Pipe(duplex=False)
        worker = _CONTEXT.Process(target=_work, args=(list(numbers[len(outcomes) :]), seed, sender))
        worker.start()
        sender.close()
        outcomes += _received(receiver)
        worker.join()
        receiver.close()
        if len(outcomes) < len(numbers):
            outcomes.append(_blamed(numbers[len(outcomes)], seed, worker.exitcode or 0))
    return outcomes


def _received(receiver: Connection) -> list[Outcome]:
    outcomes: list[Outcome] = []
    try:
        # What it says first is that the sound files were written.
        receiver.recv()
    except EOFError:
        raise RuntimeError("The worker could not even write the sound files.") from None
    try:
        while True:
            outcomes.append(receiver.recv())
    except EOFError:
        return outcomes


def _blamed(number: int, seed: int, exit_code: int) -> Outcome:
    is_endless = exit_code == -signal.SIGPROF
    kind = f"no answer in {CPU_SECONDS_A_CASE} s" if is_endless else f"the process died ({exit_code})"
    plan = Plan(number, seed)
    return Outcome(number, plan.target, plan.description, kind)


class Plan:
    """What a case does, by its number: which target, which of its files, and which mutations."""

    def __init__(self, number: int, seed: int):
        self.chance = random.Random(f"{seed} {number}")
        self.target = list(TARGETS)[number % len(TARGETS)]
        self.file = self.chance.choice(list(TARGETS[self.target].corrupted))
        mutations = TARGETS[self.target].corrupted[self.file]
        self.mutations = [self.chance.choice(mutations) for _ in range(self.chance.choice((1, 1, 2)))]

    @property
    def description(self) -> str:
        return f"{self.file}: {', '.join(mutation.__qualname__.split('.')[0] for mutation in self.mutations)}"

    def corrupt(self, content: bytes) -> bytes:
        for mutation in self.mutations:
            try:
                content = mutation(self.chance, content)
            except Exception:
                # A mutation that knows a format may not understand what another one left.
                return content
        return content


def _work(numbers: list[int], seed: int, sender: Connection) -> None:
    _be_quiet()
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    with tempfile.TemporaryDirectory() as root:
        folders = {}
        for name, target in TARGETS.items():
            folders[name] = Path(root) / name.replace(" ", "_").replace(".", "_")
            folders[name].mkdir()
            target.build(folders[name])
        _limit_memory()
        sender.send("ready")
        for number in numbers:
            plan = Plan(number, seed)
            signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS_A_CASE)
            sender.send(_run(plan, number, folders[plan.target], Path(root)))
        signal.setitimer(signal.ITIMER_PROF, 0)
    sender.close()
    # Libraries that failed in the middle of something need not tidy up.
    os._exit(0)


def _run(plan: Plan, number: int, folder: Path, root: Path) -> Outcome:
    target = TARGETS[plan.target]
    sound = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    (folder / plan.file).write_bytes(plan.corrupt(sound[folder / plan.file]))
    before = _names(root)
    kind, message = "result", ""
    try:
        if target.mend is not None:
            target.mend(folder)
        target.read(folder)
    except (ValueError, OSError) as error:
        message = str(error)
        is_named = any(name in message for name in (str(folder), Path(plan.file).name))
        kind = "refused" if is_named else f"{type(error).__name__} without the file's name"
    except BaseException as error:
        kind, message = type(error).__name__, str(error)
    if _names(root) != before:
        kind, message = "a file was written", str(_names(root) ^ before)
    for path, content in sound.items():
        path.write_bytes(content)
    return Outcome(number, plan.target, plan.description, kind, message[:300])


def _names(root: Path) -> set[str]:
    return {str(path) for path in (*root.rglob("*"), *root.parent.glob("outside*"))}


def _be_quiet() -> None:
    warnings.simplefilter("ignore")
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    datasets.disable_progress_bars()
    datasets.logging.set_verbosity(datasets.logging.CRITICAL)
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 2)


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if sys.platform == "linux" else 0
    if pages:
        limit = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, nargs="*", help="run these cases only")
    arguments = parser.parse_args()
    outcomes = run_cases(arguments.only or range(arguments.cases), arguments.seed)
    for outcome in outcomes:
        if outcome.is_finding or arguments.only:
            sys.stdout.write(
                f"case {outcome.number}, {outcome.target}, {outcome.mutation}: {outcome.kind}: {outcome.message}\n"
            )
    counts = Counter(outcome.kind if not outcome.is_finding else "findings" for outcome in outcomes)
    sys.stdout.write(f"{len(outcomes)} cases: {dict(counts)}\n")
    sys.exit(1 if counts["findings"] else 0)


if __name__ == "__main__":
    main()
