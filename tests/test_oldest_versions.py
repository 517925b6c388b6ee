"""`make test-oldest` installs the lower bounds in pyproject.toml."""

import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

from hf_storyend.modeling.loading import SUPPORTED_TRANSFORMERS

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def lower_bounds(requirements: list[str]) -> dict[str, Version]:
    parsed = [Requirement(text) for text in requirements]
    return {one.name: Version(next(s.version for s in one.specifier if s.operator == ">=")) for one in parsed}


def test_they_are_those_of_the_package():
    lines = (ROOT / ".ci" / "oldest.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    extras = PROJECT["optional-dependencies"]
    required = lower_bounds([*PROJECT["dependencies"], *extras["knowledge"], *extras["plots"]])
    assert {name: Version(number) for name, number in pins.items()} == required


def test_the_code_that_travels_requires_the_same_transformers():
    (requirement,) = (text for text in PROJECT["dependencies"] if text.startswith("transformers"))
    lowest, limit = SUPPORTED_TRANSFORMERS
    assert requirement == f"transformers>={lowest},<{limit}"
