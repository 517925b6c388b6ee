"""Files and functions stay small enough to be read at a sitting."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("hf_storyend", "modeling", "examples", "benchmarks", "tests")
MAX_FILE_LINES, MAX_FUNCTION_LINES = 600, 80
# Nine of ten functions of the package are shorter than this.
USUAL_FUNCTION_LINES = 45


def python_files(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def function_lengths(code: str) -> Iterator[tuple[str, int]]:
    """The name of every function and its number of lines, decorators included."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            start = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            assert node.end_lineno is not None
            yield node.name, node.end_lineno - start + 1


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_file_and_no_function_is_too_long(folder):
    for path in python_files(folder):
        code = path.read_text(encoding="utf-8")
        assert code.count("\n") <= MAX_FILE_LINES, path
        assert not [name for name, length in function_lengths(code) if length > MAX_FUNCTION_LINES], path


@pytest.mark.parametrize("suffix", ["css", "html", "js"])
def test_no_file_of_a_page_is_too_long(suffix):
    paths = list((ROOT / "hf_storyend").rglob(f"*.{suffix}"))
    assert paths and all(path.read_text(encoding="utf-8").count("\n") <= MAX_FILE_LINES for path in paths)


def test_most_functions_are_short():
    files = python_files("hf_storyend", "modeling")
    lengths = [length for path in files for _, length in function_lengths(path.read_text(encoding="utf-8"))]
    assert sum(length <= USUAL_FUNCTION_LINES for length in lengths) / len(lengths) > 0.9


def test_every_module_says_what_it_is():
    missing = [path for path in python_files(*FOLDERS) if not ast.get_docstring(ast.parse(path.read_text("utf-8")))]
    assert not missing


def test_a_long_function_is_seen():
    code = "@decorated\ndef long():\n" + "    pass\n" * 79
    assert list(function_lengths(code)) == [("long", 81)]
