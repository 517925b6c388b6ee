"""Public names are there, sorted and complete."""

import ast
import importlib
import inspect
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# What the files of a package may import of the others; modules that stand beside them are open to all.
ALLOWED = {
    "modeling": set(),
    "knowledge": {"modeling"},
    "explanation": {"modeling"},
    "data": {"knowledge", "modeling"},
    "annotation": {"data", "evaluation"},
    "evaluation": {"data", "modeling"},
    "hub": {"evaluation", "modeling"},
    "preparation": {"data", "knowledge", "modeling"},
    "training": {"data", "evaluation", "hub", "modeling", "preparation"},
    "comparison": {"evaluation", "training"},
    "demo": {"explanation", "hub", "modeling"},
}
# Nothing imports the command line, and it holds nothing that the library lacks.
ALLOWED["cli"] = set(ALLOWED) - {"data", "modeling"}


@pytest.mark.parametrize(
    "name",
    [
        "hf_storyend",
        "hf_storyend.annotation",
        "hf_storyend.comparison",
        "hf_storyend.data",
        "hf_storyend.demo",
        "hf_storyend.evaluation",
        "hf_storyend.explanation",
        "hf_storyend.hub",
        "hf_storyend.knowledge",
        "hf_storyend.modeling",
        "hf_storyend.preparation",
        "hf_storyend.training",
    ],
)
def test_all_names_exist_and_are_documented(name):
    module = importlib.import_module(name)
    assert module.__doc__
    for public in module.__all__:
        value = getattr(module, public)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert value.__doc__, f"{name}.{public} has no docstring"
    assert len(set(module.__all__)) == len(module.__all__)


def test_the_readme_map_names_every_file_of_modeling():
    readme = (ROOT / "README.md").read_text()
    for path in (ROOT / "modeling").glob("*.py"):
        assert path.name == "__init__.py" or path.name in readme, f"{path.name} is not in README's map"


def imported_packages(code: str) -> set[str]:
    """The packages of ours, by name, that a file in one of them imports, wherever it does so."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level in (0, 2):
            module = ".".join(filter(None, ("hf_storyend" if node.level else "", node.module)))
            names |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
    names = {"hf_storyend.cli" if name.startswith("hf_storyend.cli") else name for name in names}
    own = {name.split(".")[1] for name in names if name.startswith("hf_storyend.")}
    return own & ALLOWED.keys()


def test_imports_point_one_way():
    """Every package imports only what docs/architecture.md allows; nothing imports the command line."""
    folders = {path.parent.name: path.parent for path in (ROOT / "hf_storyend").glob("*/__init__.py")}
    assert folders.keys() - {"assets"} | {"modeling"} == ALLOWED.keys()
    for package, allowed in ALLOWED.items():
        for path in folders.get(package, ROOT / package).glob("*.py"):
            others = imported_packages(path.read_text()) - {package}
            assert others <= allowed, f"{package}/{path.name} imports {', '.join(sorted(others - allowed))}"


def test_the_documented_list_of_imports_is_that_one():
    lines = (ROOT / "docs" / "architecture.md").read_text().splitlines()
    listed = {words[0]: set(words[1:]) for words in (line.replace(",", "").split() for line in lines) if words}
    listed["modeling"] -= {"nothing", "of", "ours"}
    assert {package: listed.get(package) for package in ALLOWED} == ALLOWED


def test_an_import_is_found_in_every_form():
    assert imported_packages("from ..training import run") == {"training"}
    assert imported_packages("from .. import hub, systems") == {"hub"}
    assert imported_packages("def f():\n    from hf_storyend.data.stories import load_stories") == {"data"}
    assert imported_packages("from hf_storyend import demo\nimport hf_storyend.modeling") == {"demo", "modeling"}
    assert imported_packages("from hf_storyend.cli.main import app") == {"cli"}
    assert imported_packages("from .training import run\nimport torch\nfrom ..systems import SYSTEMS") == set()
