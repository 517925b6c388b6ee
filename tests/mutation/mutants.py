"""
Small mistakes put into the model's file, one at a time: `cd tests && python -m mutation.mutants --count 120`.

Each mutant of cosmic-ray stands in a copy of `modeling/` that a process of its own imports and tests; the first test
that fails has noticed it. The file itself is never touched. Those that nobody notices are shown; the exit code is 1
if fewer than `--threshold` of the others that matter were noticed.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import multiprocessing
import os
import random
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path

import datasets  # noqa: F401
import pytest
import torch  # noqa: F401
import transformers.generation  # noqa: F401
import transformers.modeling_utils  # noqa: F401
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names
from mutation.equivalent import EQUIVALENT

ROOT = Path(__file__).parent.parent.parent
PACKAGE = "hf_storyend.modeling"
FILE = "modeling_incremental_encoder.py"
# In this order, because the first ones are quick and notice much.
TESTS = (
    "modeling/test_model_outputs.py",
    "modeling/test_bad_input.py",
    "modeling/test_losses.py",
    "modeling/test_initial_weights.py",
    "modeling/test_plugin.py",
    "test_equations.py",
    "modeling/test_generation.py",
    "systems/test_copying_words.py",
    "systems/test_system_generation.py",
    "systems/test_system_equations.py",
    "test_invariants.py",
    "hostile/test_spoilt_files.py",
)
# Left out: what takes seconds and notices what others notice.
CHOICE = "not compiles and not trainer and not learns_to_copy and not (all_gradients and not None)"
# Of the processor, which a busy machine does not change; and of the clock, should a mutant wait for ever.
MAX_CPU_SECONDS, MAX_SECONDS = 120, 1800
SURVIVED = 0
# What imports have cost is paid once: workers start with all but the package.
_CONTEXT = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class Mutant:
    """The whole file with one mistake in it, and the line before and after."""

    operator: str
    number: int
    before: str
    after: str
    code: str

    def __str__(self) -> str:
        return f"line {self.number}, {self.operator}\n  - {self.before}\n  + {self.after}"

    @property
    def is_equivalent(self) -> bool:
        """Whether it is known to do the same as the file."""
        return (self.before, self.after) in EQUIVALENT


class CopyFinder:
    """Finds the package in a copy of its directory."""

    def __init__(self, folder: Path):
        self._folder = folder

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name != PACKAGE:
            return None
        places = [str(self._folder)]
        return importlib.util.spec_from_file_location(
            name, self._folder / "__init__.py", submodule_search_locations=places
        )


def all_mutants(code: str) -> list[Mutant]:
    """Every mutant of the file that could matter: in it, `|` stands in annotations only, which nothing evaluates."""
    mutants: list[Mutant] = []
    nodes = list(ast_nodes(get_ast(code)))
    for name in sorted(operator_names()):
        if name.startswith("core/ReplaceBinaryOperator_BitOr") or get_operator(name).arguments():
            continue
        operator = get_operator(name)()
        num_places = sum(len(list(operator.mutation_positions(node))) for node in nodes)
        mutants += [_mutant(code, name, mutate_code(code, operator, place)) for place in range(num_places)]
    return mutants


def _mutant(code: str, operator: str, mutated: str) -> Mutant:
    lines = list(zip(code.splitlines(), mutated.splitlines(), strict=False))
    number, (before, after) = next((index, pair) for index, pair in enumerate(lines, start=1) if pair[0] != pair[1])
    return Mutant(operator.removeprefix("core/"), number, before.strip(), after.strip(), mutated)


def examine(code: str, tests: Sequence[str] = TESTS) -> int | None:
    """Exit code of the tests with this code in place of the file's; negative or None if they took too long."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "modeling"
        shutil.copytree(ROOT / "modeling", copy, ignore=shutil.ignore_patterns(FILE, "__pycache__"))
        (copy / FILE).write_text(code, encoding="utf-8")
        worker = _CONTEXT.Process(target=_run_tests, args=(copy, tests))
        worker.start()
        worker.join(MAX_SECONDS)
        if worker.exitcode is None:
            worker.kill()
            worker.join()
            return None
        return worker.exitcode


def _run_tests(copy: Path, tests: Sequence[str]) -> None:
    sys.meta_path.insert(0, CopyFinder(copy))
    sys.dont_write_bytecode = True
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_SECONDS, MAX_CPU_SECONDS))
    os.chdir(copy.parent)
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-seed=0", f"--rootdir={ROOT}"]
    places = [str(ROOT / "tests" / name) for name in tests]
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
        code = pytest.main(["-c", str(ROOT / "pyproject.toml"), "-k", CHOICE, *options, *places])
    used = (
        Path(sys.modules[f"{PACKAGE}.{FILE.removesuffix('.py')}"].__file__ or "") if code == SURVIVED else copy / FILE
    )
    # A wrong file would let all of them survive.
    os._exit(int(code) if used == copy / FILE else 99)


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, help="so many, drawn at random (default: all)")
    parser.add_argument("--seed", type=int, default=0, help="of the draw (default: 0)")
    parser.add_argument("--threshold", type=float, default=0.85, help="share to be noticed (default: 0.85)")
    options = parser.parse_args()
    code = (ROOT / "modeling" / FILE).read_text(encoding="utf-8")
    start = time.monotonic()
    if examine(code) != SURVIVED:
        raise RuntimeError("The tests fail without any mutant: mend that first.")
    say(f"without a mutant the tests pass in {time.monotonic() - start:.0f} s")
    known = all_mutants(code)
    mutants = [mutant for mutant in known if not mutant.is_equivalent]
    say(f"{len(known)} mutants, {len(known) - len(mutants)} of them equivalent")
    if options.count is not None:
        mutants = random.Random(options.seed).sample(mutants, min(options.count, len(mutants)))
    survivors = []
    for number, mutant in enumerate(mutants, start=1):
        survivors += [mutant] if _survives(mutant) else []
        if number % 10 == 0:
            say(f"{number} of {len(mutants)} tried, {number - len(survivors)} noticed")
    share = 1 - len(survivors) / len(mutants)
    say(
        f"{len(mutants)} tried, {len(mutants) - len(survivors)} noticed: {share:.1%}; {time.monotonic() - start:.0f} s"
    )
    return int(share < options.threshold)


def _survives(mutant: Mutant) -> bool:
    code = examine(mutant.code)
    if code == 99:
        raise RuntimeError("The tests did not import the mutant.")
    if code != SURVIVED:
        return False
    say(f"nobody noticed {mutant}")
    return True


if __name__ == "__main__":
    sys.exit(main())
