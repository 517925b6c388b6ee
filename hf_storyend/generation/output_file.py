"""
A file of endings that survives `kill -9`: it grows in chunks under another name until it is whole.

`NAME.partial` has the endings so far, `NAME.run.json` says what they are made of. Started again, a run goes on behind
the last whole chunk; chunks begin at the same stories, so the result is that of a run without interruption.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from filelock import Timeout

from ..files import atomic_write, file_lock, make_directory, sync
from ..terminal import printable

_NAMES = {"input": "the input", "model": "the model", "options": "the options"}


class EndingsFile:
    """
    Endings on their way into a file, which one process at a time may write, until it is closed or ends.

    Args:
        path: The file.
        run: What the endings are made of, as JSON; a run with anything else may not go on with the file.
        chunk_size: Stories that are written at once.
    """

    def __init__(self, path: Path, run: Mapping[str, Any], chunk_size: int):
        self.path, self.run, self.chunk_size = path, dict(run), chunk_size
        self.partial = path.with_name(f"{path.name}.partial")
        self.run_path = path.with_name(f"{path.name}.run.json")
        self._lock = file_lock(path)

    def begin(self, num_stories: int) -> int:
        """Lock and check or start the files; return how many stories have their endings already."""
        make_directory(self.path.parent)
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise ValueError(
                f"{self.path} is being written by another process: wait for it or stop it, or give another `output`."
            ) from None
        is_known = self.run_path.is_file()
        if self.path.exists() or self.partial.exists():
            if not is_known:
                existing = self.path if self.path.exists() else self.partial
                raise ValueError(
                    f"{existing} exists already, without {self.run_path.name}, which says what it is made of: remove "
                    "it, or give another `output`."
                )
            self._check_run()
        if self.path.exists():
            return num_stories
        if not self.partial.exists():
            atomic_write(self.run_path, json.dumps(self.run, indent=1, ensure_ascii=False) + "\n")
            self.partial.touch()
            sync(self.path.parent)
        return self._cut_to_chunks(num_stories)

    def append(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Write a chunk, durably."""
        with self.partial.open("ab") as file:
            file.write("".join(json_line(record) for record in records).encode())
            file.flush()
            os.fsync(file.fileno())

    def finish(self) -> None:
        """Give the file its name."""
        os.replace(self.partial, self.path)
        sync(self.path.parent)

    def close(self) -> None:
        """Let others write the file; without effect if they may."""
        self._lock.release()

    def _check_run(self) -> None:
        try:
            before = json.loads(self.run_path.read_text(encoding="utf-8"))
            changed = [name for part, name in _NAMES.items() if before[part] != self.run[part]]
        except (ValueError, LookupError, TypeError) as error:
            raise ValueError(
                f"{self.run_path} is damaged: remove it and {self.partial.name}, and start again."
            ) from error
        if changed:
            details = _changed_options(before["options"], self.run["options"])
            raise ValueError(
                f"{self.path} was begun with other settings, and {' and '.join(changed)} changed since"
                f"{f' ({details})' if details else ''}: start with the same, or give another `output`."
            )

    def _cut_to_chunks(self, num_stories: int) -> int:
        """Cut off what a killed run left behind the last whole chunk; return the number of stories before."""
        with self.partial.open("r+b") as file:
            num_kept, end = _whole_chunks(file, self.chunk_size, num_stories)
            file.truncate(end)
            os.fsync(file.fileno())
        return num_kept


def json_line(record: Mapping[str, Any]) -> str:
    """Return a record as a line of JSON, without half characters, which no file can hold."""
    return json.dumps(record, ensure_ascii=False).encode("utf-8", "replace").decode() + "\n"


def _whole_chunks(file: BinaryIO, chunk_size: int, num_stories: int) -> tuple[int, int]:
    """Return the number of lines in whole chunks, or in all of the file if it has them all, and where they end."""
    kept = end = place = 0
    for number, line in enumerate(file, start=1):
        # Behind a loss of power there may be zeros.
        if not (line.startswith(b"{") and line.endswith(b"}\n")):
            break
        place += len(line)
        if number % chunk_size == 0 or number == num_stories:
            kept, end = number, place
    return kept, end


def _changed_options(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    return printable(", ".join(f"{name}: {before.get(name)!r} before, {now.get(name)!r} now" for name in names))
