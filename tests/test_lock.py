"""The lock of `make test`: the versions of constraints.txt, and a hash for everything."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# A package, then its hashes, each on a line of its own.
PACKAGE = re.compile(r"^([\w.-]+)==(\S+) \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.MULTILINE)


def pins(text: str) -> dict[str, str]:
    """Versions by name, spelt as the registry spells it."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in (line.split("==") for line in lines)}


@pytest.fixture(scope="module")
def lock() -> str:
    return (ROOT / "requirements-test.lock").read_text(encoding="utf-8")


def test_it_has_the_versions_of_constraints(lock):
    locked = pins("\n".join(f"{name}=={version}" for name, version, _ in PACKAGE.findall(lock)))
    assert locked == pins((ROOT / "constraints.txt").read_text(encoding="utf-8"))


def test_there_is_nothing_in_it_without_a_hash(lock):
    assert set(PACKAGE.sub("", lock).splitlines()) == {line for line in lock.splitlines() if line.startswith("#")}


def test_what_has_binaries_has_those_of_other_platforms_too(lock):
    num_hashes = {name: hashes.count("sha256") for name, _, hashes in PACKAGE.findall(lock)}
    assert all(num_hashes[name] > 10 for name in ("numpy", "torch", "safetensors", "pyarrow"))


def test_the_test_command_installs_from_it():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "pip install -q --require-hashes --no-deps -r requirements-test.lock" in makefile
