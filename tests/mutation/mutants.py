"""
Mutation testing of `modeling/`: `cd tests && python -m mutation.mutants --count 120 [--files losses.py copying.py]`.

Mutants are those of cosmic-ray, sampled over all files or the given ones. Each is written into a copy of `modeling/`
that a process of its own imports and tests; the first test that fails kills it. The files themselves are never
touched. Survivors are shown; the exit code is 1 if fewer than `--threshold` of the mutants were killed.
"""

from __future__ import annotations

import argparse
import ast
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
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.machinery import ModuleSpec
from itertools import islice
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
# Quick tests that notice much come first; before them, those that are named after the mutated file.
TESTS = (
    "test_outputs",
    "test_story_inputs",
    "test_tensor_utils",
    "test_configuration",
    "test_losses",
    "test_tail_pointer",
    "test_initialization",
    "test_loading",
    "test_baselines",
    "test_copying",
    "test_equations",
    "test_generation",
    "test_fused_recurrence",
    "test_invariants",
    "test_tokenizer",
)
TESTS_OF_FILES = {
    "candidates.py": ("modeling/test_ending_ranker.py", "robustness/test_bounds.py"),
    "configuration_incremental_encoder.py": ("modeling/test_configuration.py",),
    "endings.py": ("hub/test_pipeline.py", "modeling/test_ending_ranker.py"),
    "evidence.py": ("hub/test_pipeline.py", "explanation/test_explain_story.py", "explanation/test_effects.py"),
    "knowledge_table.py": ("modeling/test_knowledge_table.py", "modeling/test_tokenizer.py"),
    "loading.py": (
        "modeling/test_loading.py",
        "robustness/test_bounds.py",
        "robustness/test_incomplete_models.py",
        "robustness/test_corrupted_files.py",
        "hub/test_code_versions.py",
    ),
    "modeling_incremental_encoder.py": ("modeling/test_outputs.py", "modeling/test_trainer.py"),
    "pipeline_incremental_encoder.py": ("hub/test_pipeline.py",),
    "stop_strings.py": ("modeling/test_decoding.py",),
    "story_padding.py": ("modeling/test_tokenizer.py", "modeling/test_copying.py"),
    "text_processing.py": ("modeling/test_text_processing.py", "robustness/test_unusual_text.py"),
    "tokenization_incremental_encoder.py": (
        "modeling/test_tokenizer.py",
        "modeling/test_copying.py",
        "modeling/test_tail_pointer.py",
    ),
    "tokenizer_keywords.py": ("modeling/test_generic_tokenizer.py", "modeling/test_tokenizer.py"),
}
# No model is computed by these files, or by tests of their own: the other tests could notice nothing more.
TEXT_FILES = (
    "decoding.py",
    "evidence.py",
    "knowledge_table.py",
    "pipeline_incremental_encoder.py",
    "stop_strings.py",
    "story_padding.py",
    "text_processing.py",
    "tokenization_incremental_encoder.py",
)
# Left out: what takes seconds and notices what others notice.
CHOICE = "not compiles and not learns_to_copy and not hundreds"
# Of the processor, which a busy machine does not change; and of the clock, should a mutant wait for ever.
MAX_CPU_SECONDS, MAX_SECONDS = 600, 3600
SURVIVED, WRONG_FILE = 0, 99
# What imports have cost is paid once: workers start with all but the package.
_CONTEXT = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class Mutant:
    """A whole file with one mutation in it, and the line before and after."""

    file: str
    operator: str
    number: int
    before: str
    after: str
    code: str

    def __str__(self) -> str:
        return f"{self.file}, line {self.number}, {self.operator}\n  - {self.before}\n  + {self.after}"

    @property
    def is_equivalent(self) -> bool:
        """Whether it is known to do the same as the original."""
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


@dataclass(frozen=True)
class Position:
    """Where an operator can mutate a file."""

    file: str
    operator: str
    place: int

    def mutant(self) -> Mutant | None:
        """The mutant, unless it is no Python or known to do the same as the original."""
        code = read(self.file)
        mutated = mutate_code(code, get_operator(self.operator)(), self.place)
        # `|` is most often found in annotations; `**` in calls, where few operators can stand.
        if not _is_python(mutated) or ("BitOr" in self.operator and _meaning(mutated) == _meaning(code)):
            return None
        mutant = _mutant(self.file, code, self.operator, mutated)
        return None if mutant.is_equivalent else mutant


def all_positions(file: str) -> list[Position]:
    positions: list[Position] = []
    nodes = list(ast_nodes(get_ast(read(file))))
    for name in sorted(operator_names()):
        if not get_operator(name).arguments():
            operator = get_operator(name)()
            num_places = sum(len(list(operator.mutation_positions(node))) for node in nodes)
            positions += [Position(file, name, place) for place in range(num_places)]
    return positions


def sample_mutants(files: Sequence[str], count: int | None, seed: int) -> list[Mutant]:
    """Mutants of all files in random order, as many as wanted."""
    positions = [position for file in files for position in all_positions(file)]
    random.Random(seed).shuffle(positions)
    mutants = filter(None, (position.mutant() for position in positions))
    return list(islice(mutants, count))


def read(file: str) -> str:
    return (ROOT / "modeling" / file).read_text(encoding="utf-8")


def _is_python(code: str) -> bool:
    try:
        with warnings.catch_warnings():
            # Such as `is` with a literal, which the linter refuses.
            warnings.simplefilter("error", SyntaxWarning)
            compile(code, "mutant", "exec")
    except SyntaxError:
        return False
    return True


@lru_cache
def _meaning(code: str) -> str:
    """The syntax tree without annotations, which nothing evaluates."""
    return ast.dump(_WithoutAnnotations().visit(ast.parse(code)))


class _WithoutAnnotations(ast.NodeTransformer):
    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)


def _mutant(file: str, code: str, operator: str, mutated: str) -> Mutant:
    lines = list(zip(code.splitlines(), mutated.splitlines(), strict=False))
    number, (before, after) = next((index, pair) for index, pair in enumerate(lines, start=1) if pair[0] != pair[1])
    return Mutant(file, operator.removeprefix("core/"), number, before.strip(), after.strip(), mutated)


def tests_of(file: str) -> list[str]:
    """Tests in the order in which they are likely to notice a mutant of a file."""
    named = f"modeling/test_{file}"
    first = TESTS_OF_FILES.get(file, (named,) if (ROOT / "tests" / named).exists() else ())
    rest = [] if file in TEXT_FILES else [f"modeling/{name}.py" for name in TESTS]
    return list(dict.fromkeys((*first, *rest)))


def check_tests(files: Sequence[str]) -> None:
    """Run every test of these files once: what fails without a mutant would kill them all."""
    tests = list(dict.fromkeys(name for file in files for name in tests_of(file)))
    if examine(files[0], read(files[0]), tests) != SURVIVED:
        raise RuntimeError(f"Tests fail without any mutant: mend that first. Tests: {' '.join(tests)}")


def examine(file: str, code: str, tests: Sequence[str]) -> int | None:
    """Exit code of tests with this code in place of a file's; negative or None if they took too long."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "modeling"
        shutil.copytree(ROOT / "modeling", copy, ignore=shutil.ignore_patterns("__pycache__"))
        (copy / file).write_text(code, encoding="utf-8")
        worker = _CONTEXT.Process(target=_run_tests, args=(copy, file, tests))
        worker.start()
        worker.join(MAX_SECONDS)
        if worker.exitcode is None:
            worker.kill()
            worker.join()
            return None
        return worker.exitcode


def _run_tests(copy: Path, file: str, tests: Sequence[str]) -> None:
    sys.meta_path.insert(0, CopyFinder(copy))
    sys.dont_write_bytecode = True
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_SECONDS, MAX_CPU_SECONDS))
    os.chdir(copy.parent)
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-seed=0", f"--rootdir={ROOT}"]
    options += ["-m", "not slow and not browser", "-k", CHOICE]
    places = [str(ROOT / "tests" / name) for name in tests]
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
        code = pytest.main(["-c", str(ROOT / "pyproject.toml"), *options, *places])
    if code == SURVIVED:
        used = Path(sys.modules[f"{PACKAGE}.{file.removesuffix('.py')}"].__file__ or "")
        # A wrong file would let all of them survive.
        os._exit(0 if used == copy / file else WRONG_FILE)
    os._exit(int(code))


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    files = sorted(path.name for path in (ROOT / "modeling").glob("*.py") if path.name != "__init__.py")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", nargs="+", choices=files, default=files, help="files of modeling/ (default: all)")
    parser.add_argument("--count", type=int, help="size of a random sample of mutants (default: all mutants)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample (default: 0)")
    parser.add_argument("--threshold", type=float, default=0.85, help="share to be killed (default: 0.85)")
    options = parser.parse_args()
    start = time.monotonic()
    mutants = sample_mutants(options.files, options.count, options.seed)
    say(f"{len(mutants)} mutants of {len(options.files)} files")
    check_tests(sorted({mutant.file for mutant in mutants}))
    say(f"without a mutant the tests pass; {time.monotonic() - start:.0f} s")
    survivors = []
    for number, mutant in enumerate(mutants, start=1):
        survivors += [mutant] if _survives(mutant) else []
        if number % 10 == 0:
            say(f"{number} of {len(mutants)} tried, {number - len(survivors)} killed")
    for file in options.files:
        tried, left = (sum(mutant.file == file for mutant in some) for some in (mutants, survivors))
        say(f"{file}: {tried - left} of {tried}")
    share = 1 - len(survivors) / len(mutants)
    say(f"{len(mutants)} tried, {len(mutants) - len(survivors)} killed: {share:.1%}; {time.monotonic() - start:.0f} s")
    return int(share < options.threshold)


def _survives(mutant: Mutant) -> bool:
    code = examine(mutant.file, mutant.code, tests_of(mutant.file))
    if code == WRONG_FILE:
        raise RuntimeError("The tests did not import the mutant.")
    if code != SURVIVED:
        return False
    say(f"survived: {mutant}")
    return True


if __name__ == "__main__":
    sys.exit(main())
