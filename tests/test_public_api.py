"""Public names are there, sorted and complete."""

import ast
import importlib
import inspect
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    "name",
    [
        "hf_storyend",
        "hf_storyend.annotation",
        "hf_storyend.comparison",
        "hf_storyend.data",
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
    root = Path(__file__).parent.parent
    readme = (root / "README.md").read_text()
    for path in (root / "modeling").glob("*.py"):
        assert path.name == "__init__.py" or path.name in readme, f"{path.name} is not in README's map"


def test_imports_point_one_way():
    """modeling <- knowledge, data <- preparation, evaluation <- training <- comparison <- cli; annotation is apart."""
    root = Path(__file__).parent.parent / "hf_storyend"
    forbidden = {
        "annotation": {"modeling", "knowledge", "evaluation", "preparation", "training", "cli"},
        "knowledge": {"annotation", "data", "evaluation", "preparation", "training", "cli"},
        "data": {"annotation", "evaluation", "preparation", "training", "cli"},
        "evaluation": {"annotation", "preparation", "training", "cli"},
        "preparation": {"annotation", "evaluation", "training", "cli"},
        "explanation": {"annotation", "data", "knowledge", "evaluation", "preparation", "training", "hub", "cli"},
        "hub": {"annotation", "preparation", "training", "comparison", "cli"},
        "training": {"annotation", "comparison", "explanation", "cli"},
        "comparison": {"annotation", "cli"},
    }
    for package, others in forbidden.items():
        for path in (root / package).glob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom) and node.level == 2:
                    assert (node.module or "").split(".")[0] not in others, f"{path.name} imports {node.module}"
