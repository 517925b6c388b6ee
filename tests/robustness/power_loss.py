"""
A file layer that records what a program does to a directory, and shows what a loss of power would leave of it.

Python's calls that matter (`fsync`, `rename`, `unlink`, ...) are wrapped. Before and after each of them the directory
is compared with what it was, so that writes of any library are seen. A disk may keep, drop or reorder whatever was not
synced: contents of a file since its last `fsync`, a block at a time, and names in a directory since the directory's.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

BLOCK = 512
WRAPPED = ("fsync", "rename", "replace", "link", "unlink", "rmdir", "mkdir")
# Changes of names: what became of each name of a directory (None: removed), all at once.
Names = dict[tuple[int, str], int | None]


@dataclass(frozen=True)
class Event:
    """One change, or an `fsync`; `marks` are what the program had finished before it."""

    kind: str
    inode: int = 0
    content: bytes = b""
    names: Names = field(default_factory=dict)
    marks: int = 0


class PowerLoss:
    """
    Everything that happens below `root` while it is recorded.

    Args:
        root: An existing directory; what is in it counts as synced.
    """

    def __init__(self, root: Path):
        self.root = root
        self.events: list[Event] = []
        self.marks = 0
        # Kept open, so that no inode number is used twice.
        self._handles: dict[int, int] = {}
        self._files: dict[int, bytes] = {}
        self._names: dict[tuple[int, str], int] = {}
        self._stamps: dict[int, tuple[int, int]] = {}
        self.first = self._scan()
        self.top = root.stat().st_ino

    def mark(self) -> None:
        """Note that the program has finished something that must survive from now on."""
        self._observe()
        self.marks += 1

    @contextmanager
    def recording(self) -> Iterator[PowerLoss]:
        originals = {
            name: getattr(os, name) for name in ("fsync", "rename", "replace", "link", "unlink", "rmdir", "mkdir")
        }
        try:
            for name, original in originals.items():
                setattr(os, name, self._wrap(name, original))
            yield self
            self._observe()
        finally:
            for name, original in originals.items():
                setattr(os, name, original)
            for handle in self._handles.values():
                os.close(handle)

    def _wrap(self, name: str, original: Callable) -> Callable:
        def wrapped(*arguments, **named):
            self._observe()
            result = original(*arguments, **named)
            if name == "fsync":
                inode = os.fstat(arguments[0]).st_ino
                if inode in self._files or inode in self._handles:
                    self.events.append(Event("fsync", inode, marks=self.marks))
            else:
                self._observe()
            return result

        return wrapped

    def _observe(self) -> None:
        """Record what has changed since the last look: contents first, then names, as one change."""
        names, files = dict(self._names), dict(self._files)
        self._scan()
        for inode, content in self._files.items():
            if files.get(inode) != content:
                self.events.append(Event("write", inode, content, marks=self.marks))
        changed: Names = {key: inode for key, inode in self._names.items() if names.get(key) != inode}
        changed |= dict.fromkeys(names.keys() - self._names.keys())
        if changed:
            self.events.append(Event("names", names=changed, marks=self.marks))

    def _scan(self) -> tuple[dict[tuple[int, str], int], dict[int, bytes]]:
        self._names = {}
        waiting = [self.root]
        while waiting:
            folder = waiting.pop()
            place = self._hold(folder)
            for entry in os.scandir(folder):
                inode = self._hold(Path(entry.path))
                self._names[place, entry.name] = inode
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(Path(entry.path))
                    continue
                status = os.stat(entry.path)
                stamp = (status.st_mtime_ns, status.st_size)
                if self._stamps.get(inode) != stamp:
                    self._stamps[inode], self._files[inode] = stamp, Path(entry.path).read_bytes()
        return dict(self._names), dict(self._files)

    def _hold(self, path: Path) -> int:
        inode = path.stat().st_ino
        if inode not in self._handles:
            self._handles[inode] = os.open(path, os.O_RDONLY)
        return inode

    def crash(self, point: int, rng: random.Random, target: Path) -> int:
        """
        Write what the disk holds if power is lost before event `point`, and return the marks that were set by then.

        Args:
            point: An index of `events`, or their number.
            rng: Decides what of the unsynced changes is on the disk.
            target: Directory to write it to.
        """
        names, files = dict(self.first[0]), dict(self.first[1])
        pending_names: list[Names] = []
        pending_files: dict[int, list[bytes]] = {}
        for event in self.events[:point]:
            if event.kind == "write":
                pending_files.setdefault(event.inode, []).append(event.content)
            elif event.kind == "names":
                pending_names.append(event.names)
            else:
                if event.inode in pending_files:
                    files[event.inode] = pending_files.pop(event.inode)[-1]
                # A rename across directories is on the disk as soon as one of them is.
                for change in [change for change in pending_names if any(place == event.inode for place, _ in change)]:
                    _apply(names, change)
                    pending_names.remove(change)
        for change in _surviving(pending_names, rng):
            _apply(names, change)
        for inode, versions in pending_files.items():
            files[inode] = _torn([files.get(inode, b""), *versions], rng)
        self._materialise(self.top, names, files, target)
        return self.events[point].marks if point < len(self.events) else self.marks

    def _materialise(self, place: int, names: dict, files: dict[int, bytes], target: Path) -> None:
        target.mkdir()
        for (folder, name), inode in names.items():
            if folder != place:
                continue
            if inode in files or inode in self._files:
                # A name whose content never reached the disk is an empty file.
                (target / name).write_bytes(files.get(inode, b""))
            else:
                self._materialise(inode, names, files, target / name)


def _apply(names: dict[tuple[int, str], int], change: Names) -> None:
    for key, inode in change.items():
        if inode is None:
            names.pop(key, None)
        else:
            names[key] = inode


def _surviving(pending: list[Names], rng: random.Random) -> list[Names]:
    """Changes of names that are on the disk: the first few, as a journal writes them, or any."""
    if rng.random() < 0.4:
        return pending[: rng.randint(0, len(pending))]
    share = rng.random()
    return [change for change in pending if rng.random() < share]


def _torn(versions: list[bytes], rng: random.Random) -> bytes:
    """The content of a file of which each block is of any version; a length may be on the disk before its blocks."""
    length = len(rng.choice(versions))
    blocks = []
    for start in range(0, length, BLOCK):
        block = rng.choice(versions)[start : start + BLOCK]
        blocks.append(block.ljust(min(BLOCK, length - start), b"\0")[: length - start])
    return b"".join(blocks)
