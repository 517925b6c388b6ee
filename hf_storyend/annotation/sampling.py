"""
A blinded sample of endings: stories drawn at random, with item ids and orders that do not reveal the systems.

`draw_sample` draws it from the endings that `read_systems` reads; `write_key` and `read_key` keep it as `key.json`.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..data.story_records import validate_sentence
from ..data.text_files import at_line, read_json_lines, read_text, required
from ..evaluation.naming import name_systems

NO_ENDING = "[no ending]"
REFERENCE = "reference"


@dataclass(frozen=True)
class EndingRecord:
    """A story's context, a system's ending, and the reference, if there is one."""

    context: tuple[str, ...]
    ending: str
    reference: str | None


@dataclass(frozen=True)
class SystemEndings:
    """Endings of one system, a story for each line of its file."""

    name: str
    path: Path
    endings: tuple[EndingRecord, ...]


@dataclass(frozen=True)
class Story:
    """A sampled story: its line in the files of endings, and its context."""

    line: int
    context: tuple[str, ...]


@dataclass(frozen=True)
class Item:
    """An ending to be scored: its id, the index of its story in the sample, its system and its text."""

    id: str
    story: int
    system: str
    ending: str


@dataclass(frozen=True)
class Sample:
    """A sample with the systems behind its items. This is the key: annotators must not see it."""

    id: str
    num_annotators: int
    systems: tuple[str, ...]
    stories: tuple[Story, ...]
    items: tuple[Item, ...]

    def context(self, item: Item) -> tuple[str, ...]:
        """Return the sentences before an ending."""
        return self.stories[item.story].context

    def order(self, annotator: int) -> list[int]:
        """Return the indices of the items in an annotator's order, which differs between annotators."""
        indices = list(range(len(self.items)))
        random.Random(f"{self.id} {annotator}").shuffle(indices)
        return indices


def draw_sample(systems: Sequence[SystemEndings], num_stories: int, num_annotators: int = 3, seed: int = 0) -> Sample:
    """
    Draw stories, the same for every system. The same arguments give the same sample.

    Args:
        systems: Endings of the systems.
        num_stories: Number of stories to draw.
        num_annotators: Annotators of every ending, an odd number.
        seed: Seed of the sample and of all orders.
    """
    num_available = len(systems[0].endings)
    if not 1 <= num_stories <= num_available:
        raise ValueError(
            f"`num_stories` must be from 1 to {num_available}, the number of stories there is; got {num_stories}."
        )
    if num_annotators < 1 or num_annotators % 2 == 0:
        raise ValueError(
            f"`num_annotators` must be odd, so that the median of their scores is a score; got {num_annotators}."
        )
    rng = random.Random(seed)
    rows = sorted(rng.sample(range(num_available), num_stories))
    rng.shuffle(rows)
    stories = tuple(Story(row + 1, systems[0].endings[row].context) for row in rows)
    endings = [
        (story, system.name, system.endings[row].ending) for story, row in enumerate(rows) for system in systems
    ]
    rng.shuffle(endings)
    width = len(str(len(endings)))
    items = tuple(Item(f"item-{number:0{width}}", *ending) for number, ending in enumerate(endings, start=1))
    names = tuple(system.name for system in systems)
    return Sample(_sample_id(seed, num_annotators, stories, items), num_annotators, names, stories, items)


def _sample_id(seed: int, num_annotators: int, stories: Sequence[Story], items: Sequence[Item]) -> str:
    content = [seed, num_annotators, [asdict(story) for story in stories], [asdict(item) for item in items]]
    # The prefix keeps spreadsheets from reading the digits as a number.
    return "sample-" + hashlib.sha256(json.dumps(content).encode()).hexdigest()[:12]


def read_systems(paths: Sequence[Path], names: Sequence[str] | None = None) -> list[SystemEndings]:
    """
    Read the endings of all systems.

    Args:
        paths: JSON Lines files, with the same stories on the same lines.
        names: Name of the system of each file; default: the names of the files.
    """
    names = _check_names(paths, names)
    systems = [SystemEndings(name, path, _read_endings(path)) for name, path in zip(names, paths, strict=True)]
    for system in systems[1:]:
        _check_same_stories(systems[0], system)
    return systems


def reference_system(system: SystemEndings) -> SystemEndings:
    """Return the references as a system of their own: an upper bound."""
    references = []
    for line, record in enumerate(system.endings, start=1):
        if record.reference is None:
            raise ValueError(f"{system.path}, line {line}: key `reference` is missing; there is no ending to score.")
        references.append(EndingRecord(record.context, record.reference, record.reference))
    return SystemEndings(REFERENCE, system.path, tuple(references))


def _check_names(paths: Sequence[Path], names: Sequence[str] | None) -> list[str]:
    if not paths:
        raise ValueError("`endings` is empty: at least one file of endings must be given.")
    names = name_systems(paths) if names is None else [" ".join(name.split()) for name in names]
    if len(names) != len(paths):
        raise ValueError(f"`names` has {len(names)} names, `endings` {len(paths)} files: give one name a file.")
    for name in names:
        if not name or names.count(name) > 1:
            raise ValueError(
                f"`names` must differ and not be blank; got {', '.join(map(repr, names))}. Name each file of endings."
            )
    return names


def _read_endings(path: Path) -> tuple[EndingRecord, ...]:
    endings = tuple(_ending_records(path))
    if not endings:
        raise ValueError(f"{path} is empty: there is no ending in it.")
    return endings


def _ending_records(path: Path) -> Iterator[EndingRecord]:
    for number, record in read_json_lines(path):
        with at_line(path, number):
            ending = _ending_record(record)
        yield ending


def _ending_record(record: dict[str, Any]) -> EndingRecord:
    """Check a record and normalise its white space; a blank ending is a valid output of a system."""
    context, ending, reference = required(record, "context"), required(record, "ending"), record.get("reference")
    if not isinstance(context, list) or not context:
        raise ValueError(f"`context` must be a list of at least one sentence; got {context!r:.80}")
    sentences = tuple(_sentence(f"context[{index}]", sentence) for index, sentence in enumerate(context))
    if isinstance(ending, str) and not ending.strip():
        ending = NO_ENDING
    return EndingRecord(
        sentences, _sentence("ending", ending), None if reference is None else _sentence("reference", reference)
    )


def _sentence(name: str, value: Any) -> str:
    return " ".join(validate_sentence(name, value).split())


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


# More than any study has: a corrupted number must not become a list of millions.
_MAX_ANNOTATORS = 10_000
_NO_KEY = "This is not the `key.json` that the sample was written with."


def write_key(sample: Sample, path: Path) -> None:
    """Write a sample with the systems behind its items."""
    path.write_text(json.dumps(asdict(sample), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def read_key(path: Path) -> Sample:
    """Read a sample that `write_key` has written."""
    text = read_text(path)
    try:
        sample = _parse_sample(json.loads(text))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}, line {error.lineno}, column {error.colno}: {error.msg}. {_NO_KEY}") from error
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{path}: {type(error).__name__} {error}. {_NO_KEY}") from error
    _check_sample(path, sample)
    return sample


def _parse_sample(content: dict[str, Any]) -> Sample:
    return Sample(
        id=_typed(str, content["id"]),
        num_annotators=_typed(int, content["num_annotators"]),
        systems=tuple(_typed(str, name) for name in content["systems"]),
        stories=tuple(
            Story(_typed(int, story["line"]), tuple(_typed(str, sentence) for sentence in story["context"]))
            for story in content["stories"]
        ),
        items=tuple(_parse_item(item) for item in content["items"]),
    )


def _parse_item(content: dict[str, Any]) -> Item:
    item_id, system, ending = (_typed(str, content[key]) for key in ("id", "system", "ending"))
    return Item(item_id, _typed(int, content["story"]), system, ending)


def _typed(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise TypeError(f"{value!r:.60} is no {kind.__name__}")
    return value


def _check_sample(path: Path, sample: Sample) -> None:
    pairs = {(item.story, item.system) for item in sample.items}
    expected = {(story, system) for story in range(len(sample.stories)) for system in sample.systems}
    ids = {item.id for item in sample.items}
    if not expected or pairs != expected or not len(ids) == len(pairs) == len(sample.items):
        raise ValueError(f"{path}: there is not one item for every story and system. {_NO_KEY}")
    if not 1 <= sample.num_annotators <= _MAX_ANNOTATORS:
        raise ValueError(f"{path}: `num_annotators` must be from 1 to {_MAX_ANNOTATORS}. {_NO_KEY}")
