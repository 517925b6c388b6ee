"""Write requirements-test.lock: the versions of constraints.txt, with the hashes of all files on the registry.

    pip install uv && python .ci/lock.py [WHEEL ...]

Wheels named on the command line are allowed, too: torch as a CPU build, for example.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
LOCK = ROOT / "requirements-test.lock"
HEADER = """\
# What `make test` installs: the versions of constraints.txt, with the hashes of all their files.
# Written by .ci/lock.py; do not edit.
"""


def registry_hashes() -> str:
    """Return every package of constraints.txt with its hashes, one a line, for all platforms."""
    command = [sys.executable, "-m", "uv", "pip", "compile", str(ROOT / "constraints.txt")]
    command += ["--generate-hashes", "--no-deps", "--universal", "--no-header", "--no-annotate", "--quiet"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


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
    lock = registry_hashes()
    for wheel in wheels:
        lock = allow(lock, Path(wheel))
    LOCK.write_text(HEADER + lock, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
