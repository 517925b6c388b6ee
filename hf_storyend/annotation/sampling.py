"""A blinded sample: stories drawn by chance, their endings in an order and under names that tell no system."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..data.story_files import checked_sentence
from ..data.text_files import at_line, read_json_lines, read_text, required

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


@dataclass(frozen=True)
class Story:
    """A story that was drawn: its sentences, and its line in the files of endings."""

    line: int
    context: tuple[str, ...]


@dataclass(frozen=True)
class Item:
    """One ending to be scored. Only the key tells its system."""

    id: str
    story: int
    system: str
    ending: str


@dataclass(frozen=True)
class Sample:
    """All that was drawn, and for how many annotators. This is the key: annotators don't see it."""

    id: str
    num_annotators: int
    systems: tuple[str, ...]
    stories: tuple[Story, ...]
    items: tuple[Item, ...]

    def context(self, item: Item) -> tuple[str, ...]:
        """The sentences before an ending."""
        return self.stories[item.story].context

    def order(self, annotator: int) -> list[int]:
        """The places of the items on an annotator's sheet: another order for everyone, so that tiring evens out."""
        places = list(range(len(self.items)))
        random.Random(f"{self.id} {annotator}").shuffle(places)
        return places


def draw_sample(systems: Sequence[SystemEndings], num_stories: int, num_annotators: int = 3, seed: int = 0) -> Sample:
    """Draw stories, the same for every system; the same arguments draw the same sample."""
    num_there = len(systems[0].endings)
    if not 1 <= num_stories <= num_there:
        raise ValueError(
            f"`num_stories` must be from 1 to {num_there}, the number of stories there is; got {num_stories}."
        )
    if num_annotators < 1 or num_annotators % 2 == 0:
        raise ValueError(
            f"`num_annotators` must be odd, so that the median of their scores is a score; got {num_annotators}."
        )
    chance = random.Random(seed)
    places = sorted(chance.sample(range(num_there), num_stories))
    chance.shuffle(places)
    stories = tuple(Story(place + 1, systems[0].endings[place].context) for place in places)
    endings = [
        (story, system.name, system.endings[place].ending) for story, place in enumerate(places) for system in systems
    ]
    chance.shuffle(endings)
    width = len(str(len(endings)))
    items = tuple(Item(f"item-{number:0{width}}", *ending) for number, ending in enumerate(endings, start=1))
    names = tuple(system.name for system in systems)
    return Sample(_sample_id(seed, num_annotators, stories, items), num_annotators, names, stories, items)


def _sample_id(seed: int, num_annotators: int, stories: Sequence[Story], items: Sequence[Item]) -> str:
    content = [seed, num_annotators, [asdict(story) for story in stories], [asdict(item) for item in items]]
    # A word in front: a spreadsheet would take bare digits for a number.
    return "sample-" + hashlib.sha256(json.dumps(content).encode()).hexdigest()[:12]


def write_key(sample: Sample, path: Path) -> None:
    """Write which system is behind each item."""
    path.write_text(json.dumps(asdict(sample), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def read_key(path: Path) -> Sample:
    """Read back what `write_key` wrote."""
    text = read_text(path)
    try:
        content: dict[str, Any] = json.loads(text)
        sample = Sample(
            id=_of_type(str, content["id"]),
            num_annotators=_of_type(int, content["num_annotators"]),
            systems=tuple(_of_type(str, name) for name in content["systems"]),
            stories=tuple(
                Story(_of_type(int, story["line"]), tuple(_of_type(str, sentence) for sentence in story["context"]))
                for story in content["stories"]
            ),
            items=tuple(_item(item) for item in content["items"]),
        )
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}, line {error.lineno}, column {error.colno}: {error.msg}. {_NO_KEY}") from error
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{path}: {type(error).__name__} {error}. {_NO_KEY}") from error
    _check_key(path, sample)
    return sample


def _item(content: dict[str, Any]) -> Item:
    name, system, ending = (_of_type(str, content[key]) for key in ("id", "system", "ending"))
    return Item(name, _of_type(int, content["story"]), system, ending)


def _of_type(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise TypeError(f"{value!r:.60} is no {kind.__name__}")
    return value


# More than any study has; a damaged number must not become a list of millions.
_MAX_ANNOTATORS = 10_000
_NO_KEY = "This is not the `key.json` that the sample was written with."


def _check_key(path: Path, sample: Sample) -> None:
    pairs = {(item.story, item.system) for item in sample.items}
    wanted = {(story, system) for story in range(len(sample.stories)) for system in sample.systems}
    ids = {item.id for item in sample.items}
    if not wanted or pairs != wanted or not len(ids) == len(pairs) == len(sample.items):
        raise ValueError(f"{path}: there is not one item for every story and system. {_NO_KEY}")
    if not 1 <= sample.num_annotators <= _MAX_ANNOTATORS:
        raise ValueError(f"{path}: `num_annotators` must be from 1 to {_MAX_ANNOTATORS}. {_NO_KEY}")
