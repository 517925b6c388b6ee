"""Requests in, explained endings out; one writer serves all visitors at the same time."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

from ..explanation.explain import explain_ending
from ..explanation.observation import evaluating
from ..explanation.result import Explanation
from ..explanation.story_tensors import StoryTensors, read_story
from ..explanation.triple_search import find_triples
from .requests import EndingRequest, OwnTriple
from .shelf import LoadedSystem, SystemShelf

# One seed for all threads: two that draw at the same time would take words from one another.
_DRAWING = threading.Lock()
_NUM_BEAMS, _MAX_REMEMBERED = 4, 32


@dataclass(frozen=True)
class WrittenEndings:
    """The endings of a story, and the first one as it would be without the visitor's triples, if there were any."""

    endings: tuple[Explanation, ...]
    without_triples: str | None = None


class EndingWriter:
    """
    Writes endings with any of some systems, and remembers the last few requests: that is all it keeps.

    Args:
        models: Directories of models, or names on the Hub; the model that comes with the package if there are none.
    """

    def __init__(self, models: Sequence[str] = ()):
        self._shelf = SystemShelf(models)
        self.write = lru_cache(maxsize=_MAX_REMEMBERED)(self._write)

    @property
    def systems(self) -> list[str]:
        """The names to choose among; the first is the default."""
        return self._shelf.names

    def _write(self, request: EndingRequest) -> WrittenEndings:
        system = self._shelf.get(request.system)
        plain = read_story(system.model, system.tokenizer, request.sentences)
        story = _with_triples(system, request) if request.triples else plain
        endings = [
            explain_ending(system.model, system.tokenizer, story, ids)
            for ids in _generate(system.model, story, request)
        ]
        if not request.triples:
            return WrittenEndings(tuple(endings))
        ids = _generate(system.model, plain, request)[0]
        text = system.tokenizer.decode(ids, skip_special_tokens=True, context=plain.sentences)
        return WrittenEndings(tuple(endings), str(text))


def _with_triples(system: LoadedSystem, request: EndingRequest) -> StoryTensors:
    """The story with the visitor's triples in its graphs; one that can't be used is an error with its row."""
    if system.model.config.knowledge is None:
        raise ValueError(f"{request.system} reads no knowledge: remove the triples, or choose another system.")
    for triple in request.triples:
        _check_words(system, triple)
    story = read_story(system.model, system.tokenizer, request.sentences, [triple.parts for triple in request.triples])
    for triple in request.triples:
        find_triples(system.tokenizer, story, f"Triple {triple.row}", [triple.parts])
    return story


def _check_words(system: LoadedSystem, triple: OwnTriple) -> None:
    tokenizer = system.tokenizer
    head, tail = ((word.lower() if tokenizer.do_lower_case else word) for word in (triple.head, triple.tail))
    problems = tokenizer.knowledge.problems_with([(head, triple.relation, tail)], tokenizer.get_vocab())
    for problem in problems.values():
        raise ValueError(f"Triple {triple.row} can't be used: {problem}.")


def _generate(model: Any, story: StoryTensors, request: EndingRequest) -> list[list[int]]:
    """Ids of each ending, up to the end symbol and with it, if there is one."""
    arguments = {**_generate_arguments(request), "num_return_sequences": int(request.num_endings)}
    with evaluating(model):
        if request.mode == "samples":
            with _DRAWING, torch.random.fork_rng():
                torch.manual_seed(int(request.seed))
                sequences = model.generate(**story.tensors, **arguments)
        else:
            sequences = model.generate(**story.tensors, **arguments)
    end = model.config.eos_token_id
    rows = [ids[1:] for ids in sequences.tolist()]
    return [ids[: ids.index(end) + 1] if end in ids else ids for ids in rows]


def _generate_arguments(request: EndingRequest) -> dict[str, Any]:
    if request.mode == "samples":
        return {"do_sample": True, "num_beams": 1, "top_k": 0, "temperature": float(request.temperature)}
    num_beams = max(_NUM_BEAMS, int(request.num_endings)) if request.mode == "beams" else 1
    return {"do_sample": False, "num_beams": num_beams}
