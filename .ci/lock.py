"""Write the locks: versions with the hashes of all their files on the registry.

    pip install uv && python .ci/lock.py [WHEEL ...]

requirements-test.lock has the versions of constraints.txt. Wheels named on the command line are allowed there, too:
torch as a CPU build, for example. requirements-docs.lock is what the extra `docs` needs, in versions that do not
contradict constraints.txt.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
LOCK, DOCS_LOCK = ROOT / "requirements-test.lock", ROOT / "requirements-docs.lock"
HEADER = """\
# What `make test` installs: the versions of constraints.txt, with the hashes of all their files.
# Written by .ci/lock.py; do not edit.
"""
DOCS_HEADER = """\
# What `make docs` installs, with the hashes of all files; versions are those of constraints.txt where it has any.
# Written by .ci/lock.py; do not edit.
"""


def registry_hashes(requirements: str, *options: str) -> str:
    """Return packages with their hashes, one a line, for all platforms."""
    command = [sys.executable, "-m", "uv", "pip", "compile", "-", *options]
    command += ["--generate-hashes", "--universal", "--no-header", "--no-annotate", "--quiet"]
    return subprocess.run(command, check=True, capture_output=True, text=True, input=requirements).stdout


def allow(lock: str, wheel: Path) -> str:
    """Return the lock with one more file of one of its packages."""
    name, version = wheel.name.split("-")[:2]
    # torch-2.13.0+cpu is a build of torch 2.13.0.
    line = f"{name}=={version.split('+')[0]} \\\n"
    if line not in lock:
        raise ValueError(f"{wheel.name} is not a file of a version in constraints.txt.")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    return lock.replace(line, f"{line}    --hash=sha256:{digest} \\\n")


def main(wheels: list[str]) -> None:
    constraints = ROOT / "constraints.txt"
    lock = registry_hashes(constraints.read_text(encoding="utf-8"), "--no-deps")
    for wheel in wheels:
        lock = allow(lock, Path(wheel))
    LOCK.write_text(HEADER + lock, encoding="utf-8")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    docs = registry_hashes("\n".join(extras["docs"]), "--constraint", str(constraints))
    DOCS_LOCK.write_text(DOCS_HEADER + docs, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
