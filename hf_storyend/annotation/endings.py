"""The endings that several systems wrote for the same stories: one JSON Lines file a system, in the same order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..data.json_lines import read_json_lines, required
from ..data.story_records import checked_sentence
from ..data.text_files import at_line

NO_ENDING = "[no ending]"
REFERENCE = "reference"


@dataclass(frozen=True)
class WrittenEnding:
    """A story's context, the ending a system wrote, and the ending a person wrote, if it is there."""

    context: tuple[str, ...]
    ending: str
    reference: str | None


@dataclass(frozen=True)
class SystemEndings:
    """One system's endings, a story a line of its file."""

    name: str
    path: Path
    endings: tuple[WrittenEnding, ...]


def read_systems(paths: Sequence[Path], names: Sequence[str] | None = None) -> list[SystemEndings]:
    """
    The endings of all systems; without `names`, a system is called like its file. All files must have the same stories
    on the same lines.
    """
    names = _checked_names(paths, names)
    systems = [SystemEndings(name, path, read_endings(path)) for name, path in zip(names, paths, strict=True)]
    for system in systems[1:]:
        _check_same_stories(systems[0], system)
    return systems


def reference_system(system: SystemEndings) -> SystemEndings:
    """The endings that people wrote, as one more system: what a perfect system could reach."""
    references = []
    for line, written in enumerate(system.endings, start=1):
        if written.reference is None:
            raise ValueError(f"{system.path}, line {line}: key `reference` is missing; there is no ending to score.")
        references.append(WrittenEnding(written.context, written.reference, written.reference))
    return SystemEndings(REFERENCE, system.path, tuple(references))


def read_endings(path: Path) -> tuple[WrittenEnding, ...]:
    """All stories of one file. White space is evened out; a blank ending is one that a system really wrote."""
    endings = tuple(_read_lines(path))
    if not endings:
        raise ValueError(f"{path} is empty: there is no ending in it.")
    return endings


def _read_lines(path: Path) -> Iterator[WrittenEnding]:
    for number, record in read_json_lines(path):
        with at_line(path, number):
            ending = _written_ending(record)
        yield ending


def _written_ending(record: dict[str, Any]) -> WrittenEnding:
    context, ending, reference = required(record, "context"), required(record, "ending"), record.get("reference")
    if not isinstance(context, list) or not context:
        raise ValueError(f"`context` must be a list of at least one sentence; got {context!r:.80}")
    sentences = tuple(_sentence(f"context[{place}]", sentence) for place, sentence in enumerate(context))
    if isinstance(ending, str) and not ending.strip():
        ending = NO_ENDING
    return WrittenEnding(
        sentences, _sentence("ending", ending), None if reference is None else _sentence("reference", reference)
    )


def _sentence(name: str, value: Any) -> str:
    return " ".join(checked_sentence(name, value).split())


def _checked_names(paths: Sequence[Path], names: Sequence[str] | None) -> list[str]:
    if not paths:
        raise ValueError("`endings` is empty: at least one file of endings must be given.")
    names = (
        [path.name.split(".")[0] for path in paths] if names is None else [" ".join(name.split()) for name in names]
    )
    if len(names) != len(paths):
        raise ValueError(f"`names` has {len(names)} names, `endings` {len(paths)} files: give one name a file.")
    for name in names:
        if not name or names.count(name) > 1:
            raise ValueError(
                f"`names` must differ and not be blank; got {', '.join(map(repr, names))}. Name each file of endings."
            )
    return names


def _check_same_stories(first: SystemEndings, other: SystemEndings) -> None:
    for line, (one, two) in enumerate(zip(first.endings, other.endings, strict=False), start=1):
        if one.context != two.context:
            raise ValueError(
                f"{other.path}, line {line}: not the story on line {line} of {first.path}: "
                f"{' '.join(two.context)!r:.60} there, {' '.join(one.context)!r:.60} here. "
                "All files must have the same stories in the same order."
            )
    if len(first.endings) != len(other.endings):
        longer, shorter = sorted((first, other), key=lambda system: len(system.endings), reverse=True)
        raise ValueError(
            f"{shorter.path} ends after line {len(shorter.endings)}, {longer.path} goes on to line "
            f"{len(longer.endings)}: all files must have the same stories in the same order."
        )
