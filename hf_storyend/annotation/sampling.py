"""A blinded sample: stories drawn by chance, their endings in an order and under names that tell no system."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..data.text_files import read_text
from .endings import SystemEndings


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
