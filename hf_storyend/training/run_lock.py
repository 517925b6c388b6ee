"""One run at a time in an output directory: an inter-process lock that says who holds it."""

from __future__ import annotations

import getpass
import json
import os
import socket
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from ..files import atomic_write

LOCK, HOLDER = ".run.lock", ".run.json"
# Seconds in which the data loader's workers of a killed run, which share its lock, notice that they are orphans.
_ORPHANS_LEFT = 30


class DirectoryInUse(ValueError):
    """Another process holds the directory."""


class RunLock:
    """
    Holds an output directory for a whole run. The lock ends with its process, however that ends.

    Args:
        directory: The output directory, which exists.
    """

    def __init__(self, directory: Path):
        self.directory = directory
        self._lock = FileLock(directory / LOCK, thread_local=False)

    def acquire(self) -> None:
        """Take the lock and write down who has it; a [`DirectoryInUse`] names another holder."""
        if (self.directory / LOCK).is_symlink():
            # Versions of filelock empty the file that it leads to.
            raise ValueError(f"{self.directory / LOCK} is a link, which no run makes: delete it.")
        holder = self._read_holder()
        try:
            self._lock.acquire(timeout=_ORPHANS_LEFT if holder and _has_died(holder) else 0)
        except Timeout:
            raise DirectoryInUse(
                f"{self.directory} is in use by another run ({_described(self._read_holder())}): wait for it or stop "
                "it, or choose another `--output_dir`."
            ) from None
        atomic_write(self.directory / HOLDER, json.dumps(_this_process(), ensure_ascii=False) + "\n")

    def release(self) -> None:
        """Give the lock back; without effect if it is not held."""
        if self._lock.is_locked:
            (self.directory / HOLDER).unlink(missing_ok=True)
            self._lock.release()

    def _read_holder(self) -> dict[str, Any]:
        try:
            holder = json.loads((self.directory / HOLDER).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        return holder if isinstance(holder, dict) else {}


def _this_process() -> dict[str, Any]:
    return {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "user": _user(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": " ".join(sys.argv)[:200],
    }


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # Containers may run under a number that has no name.
        return str(os.getuid()) if hasattr(os, "getuid") else "unknown"


def _described(holder: dict[str, Any]) -> str:
    if not holder:
        return "which has just started"
    return f"process {holder.get('pid')} of {holder.get('user')} on {holder.get('host')} since {holder.get('started')}"


def _has_died(holder: dict[str, Any]) -> bool:
    """Whether the holder was a process of this machine that is no more."""
    pid = holder.get("pid")
    if holder.get("host") != socket.gethostname() or type(pid) is not int or os.name == "nt":
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
