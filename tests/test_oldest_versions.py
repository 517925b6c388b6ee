"""What `make test-oldest` installs are the lower ends of what setup.py requires."""

import ast
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parent.parent


def required(*lists: str) -> dict[str, Version]:
    """Lower ends in lists of setup.py."""
    tree = ast.parse((ROOT / "setup.py").read_text(encoding="utf-8"))
    found = {
        statement.targets[0].id: ast.literal_eval(statement.value)
        for statement in tree.body
        if isinstance(statement, ast.Assign) and statement.targets[0].id in lists
    }
    assert found.keys() == set(lists)
    requirements = [Requirement(text) for texts in found.values() for text in texts]
    return {one.name: Version(next(s.version for s in one.specifier if s.operator == ">=")) for one in requirements}


def test_they_are_those_of_setup():
    lines = (ROOT / ".ci" / "oldest.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert {name: Version(version) for name, version in pins.items()} == required("REQUIRED", "KNOWLEDGE", "PLOTS")


def test_the_code_that_travels_asks_for_the_same_transformers():
    from hf_storyend.modeling.supported_versions import SUPPORTED_TRANSFORMERS

    assert Version(SUPPORTED_TRANSFORMERS[0]) == required("REQUIRED")["transformers"]
