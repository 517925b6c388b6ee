"""Event handlers of the demo: values of the page in, values of the page out. Errors become messages."""

from __future__ import annotations

import importlib
import logging
import os
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from ..explanation.result import EndingWord, Explanation
from .generator import EndingGenerator
from .options import DEFAULT_LIMITS, StoryLimits
from .rendering import (
    PENDING,
    attention_html,
    clues_html,
    ending_html,
    ending_text,
    highest,
    message_html,
    page_html,
    word_table_html,
)
from .requests import (
    Decoding,
    EndingRequest,
    parse_story,
    parse_triple,
    parse_triples,
)

logger = logging.getLogger(__name__)

_COMMON_RELATION = "Causes"
_SERVER_ERROR = "Something went wrong on the server; its log says what."
_EXPIRED = "This page was left alone for too long: generate the ending again."


def import_gradio() -> Any:
    """Import Gradio, an optional dependency."""
    # By default it keeps the times of the last 10,000 requests, and sums all of them up after each one.
    os.environ.setdefault("GRADIO_ANALYTICS_MAX_EVENTS", "64")
    os.environ.setdefault("GRADIO_ANALYTICS_CACHE_FREQUENCY", str(10**9))
    try:
        return importlib.import_module("gradio")
    except ImportError as error:
        raise ImportError('The demo needs gradio. Install it with `pip install "hf_storyend[demo]"`.') from error


class DemoHandlers:
    """
    The functions behind the page.

    Args:
        generator: Generates the endings.
        limits: Longest story that is taken.
    """

    def __init__(self, generator: EndingGenerator, limits: StoryLimits = DEFAULT_LIMITS):
        self._generator = generator
        self._limits = limits
        self._gradio = import_gradio()

    def generate(
        self,
        system: str,
        story: str,
        triples: str,
        decoding: Decoding,
        num_endings: int,
        temperature: float,
        seed: int,
        top_p: float = 1.0,
        top_k: int = 0,
    ) -> list[Any]:
        """Return message, visibility of the results, the request, the choice of endings, and the first ending."""
        try:
            request = EndingRequest(
                system,
                parse_story(story, self._limits),
                parse_triples(triples or ""),
                decoding,
                # Greedy decoding gives one ending, whatever the slider says.
                1 if decoding == "greedy" else num_endings,
                temperature,
                seed,
                self._limits,
                top_p,
                top_k,
            )
            generated = self._generator.generate(request)
            choices = [(ending_text(explanation), number) for number, explanation in enumerate(generated.endings)]
            shown = self._show(request, 0)
        except Exception as error:
            unchanged = [self._gradio.skip()] * 8
            return [message_html(error_message(error)), self._gradio.Column(visible=False), *unchanged]
        endings = self._gradio.Radio(choices, value=0, visible=len(choices) > 1)
        return ["", self._gradio.Column(visible=True), request, endings, *shown]

    def choose(self, request: EndingRequest | None, number: int | None) -> list[Any]:
        """Return another ending of the same request."""
        try:
            return self._show(*_unexpired(request, number))
        except Exception as error:
            return [message_html(error_message(error)), *[self._gradio.skip()] * 5]

    def relations(self, system: str, chosen: str | None = None) -> Any:
        """Return the choice of relations for triples of a system."""
        names = self._generator.relations(system)
        value = next((name for name in (chosen, _COMMON_RELATION) if name in names), names[0] if names else None)
        return self._gradio.Dropdown(choices=names, value=value, interactive=bool(names))

    def add_triple(self, triples: str, head: str, relation: str | None, tail: str) -> list[Any]:
        """Return message, the list of triples with one more line, and empty fields for the next one."""
        kept = [self._gradio.skip()] * 3
        try:
            triple = parse_triple(len(parse_triples(triples or "")) + 1, [head or "", relation or "", tail or ""])
        except Exception as error:
            return [message_html(error_message(error)), *kept]
        lines = [*(triples or "").strip().splitlines(), ", ".join(triple.parts)]
        return ["", "\n".join(lines), "", ""]

    def page(self, request: EndingRequest | None, number: int | None) -> str:
        """Return the interactive page of an ending."""
        return self._render(request, number, page_html)

    def clues(self, request: EndingRequest | None, number: int | None) -> str:
        """Return the picture of an ending's clues."""
        return self._render(request, number, clues_html)

    def attention(self, request: EndingRequest | None, number: int | None) -> str:
        """Return the picture of an ending's attention."""
        return self._render(request, number, attention_html)

    def endings(
        self,
        story: str,
        triples: list[list[str]] | None = None,
        decoding: str = "beam_search",
        num_endings: int = 1,
        temperature: float = 0.7,
        seed: int = 1,
        system: str | None = None,
        top_p: float = 1.0,
        top_k: int = 0,
    ) -> list[dict[str, Any]]:
        """
        Return the endings of a story, each with what its words came from, effects and attention, for programs. Triples
        are lists of head, relation, tail.
        """
        try:
            rows = enumerate(triples or (), start=1)
            request = EndingRequest(
                self._generator.systems[0] if system is None else system,
                parse_story(story, self._limits),
                tuple(parse_triple(row, parts) for row, parts in rows),
                decoding,  # type: ignore[arg-type]  # checked by the request
                num_endings,
                temperature,
                seed,
                self._limits,
                top_p,
                top_k,
            )
            return [_as_dict(explanation) for explanation in self._generator.generate(request).endings]
        except Exception as error:
            raise self._gradio.Error(error_message(error), print_exception=False) from error

    def _show(self, request: EndingRequest, number: int) -> list[Any]:
        """Return an ending with its table of words; page and pictures are rendered when their tabs are opened."""
        generated = self._generator.generate(request)
        tabs = self._gradio.Tabs(selected="words")
        return [ending_html(generated, number), tabs, word_table_html(generated.endings[number]), *[PENDING] * 3]

    def _render(self, request: EndingRequest | None, number: int | None, render: Callable[[Explanation], str]) -> str:
        try:
            known, place = _unexpired(request, number)
            return render(self._generator.generate(known).endings[place])
        except Exception as error:
            return message_html(error_message(error))


def error_message(error: Exception) -> str:
    """Return what a visitor is told: an error of the request, or that the server failed, which is logged."""
    if isinstance(error, (ValueError, ImportError)):
        return str(error)
    logger.error("The demo failed.", exc_info=error)
    return _SERVER_ERROR


def _unexpired(request: EndingRequest | None, number: int | None) -> tuple[EndingRequest, int]:
    """Return the state of a page; if very many pages are open, Gradio drops the state of the oldest."""
    if request is None or number is None:
        raise ValueError(_EXPIRED)
    return request, number


def _as_dict(explanation: Explanation) -> dict[str, Any]:
    return {
        "ending": explanation.ending,
        "log_probability": explanation.log_probability,
        "words": [_word_dict(word) for word in explanation.words],
        "evidence": [asdict(item) for item in explanation.evidence],
        "effects": asdict(explanation.effects),
        "notes": explanation.notes,
    }


def _word_dict(word: EndingWord) -> dict[str, Any]:
    return {
        "word": word.word,
        "probability": word.probability,
        "sources": asdict(word.sources),
        "state_attention": [asdict(read) for read in highest(word.state_attention)],
        "triple_attention": [asdict(read) for read in highest(word.triple_attention or ())],
    }
