"""What happens when something is pressed: values of the page in, values of the page out, and never an exception."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from transformers.utils import logging

from ..explanation.result import Explanation
from .evidence import ending_html, ending_text, evidence_html, evidence_of, message_html, page_html, picture_html
from .libraries import gradio_library
from .pictures import attention_picture, clues_picture
from .requests import EndingRequest, Mode, read_sentences, read_triple, read_triples
from .writing import EndingWriter

logger = logging.get_logger(__name__)

_FAILED = "Something went wrong on the server; its log says what."
_GONE = "This page was left alone for too long: write the ending again."
_CLUES = "The story's sentences and the ending, with arrows from clue words to the words that they read most"
_ATTENTION = "Matrices of what the words of each sentence read of the one before it, by states and by knowledge"


class DemoHandlers:
    """
    The functions behind the page.

    Args:
        writer: Writes the endings.
    """

    def __init__(self, writer: EndingWriter):
        self._writer = writer
        self._gradio = gradio_library()

    def write(
        self, system: str, story: str, triples: str, mode: Mode, num_endings: int, temperature: float, seed: int
    ) -> list[Any]:
        """Endings of a story: message, whether results are shown, the request, the choice, and the first ending."""
        try:
            request = EndingRequest(
                system,
                read_sentences(story),
                read_triples(triples or ""),
                mode,
                # Greedy search writes one ending, whatever the slider that it has no use for says.
                1 if mode == "greedy" else num_endings,
                temperature,
                seed,
            )
            written = self._writer.write(request)
            choices = [(ending_text(explanation), number) for number, explanation in enumerate(written.endings)]
            shown = self._show(request, 0)
        except Exception as error:
            nothing = [self._gradio.skip()] * 8
            return [message_html(sentence_of(error)), self._gradio.Column(visible=False), *nothing]
        endings = self._gradio.Radio(choices, value=0, visible=len(choices) > 1)
        return ["", self._gradio.Column(visible=True), request, endings, *shown]

    def choose(self, request: EndingRequest | None, number: int | None) -> list[Any]:
        """Another ending of the same request."""
        try:
            return self._show(*_asked(request, number))
        except Exception as error:
            return [message_html(sentence_of(error)), *[self._gradio.skip()] * 5]

    def page(self, request: EndingRequest | None, number: int | None) -> str:
        """The page to look around in."""
        return self._of_ending(request, number, page_html)

    def clues(self, request: EndingRequest | None, number: int | None) -> str:
        """The picture of clues."""
        return self._of_ending(request, number, lambda ending: picture_html(clues_picture(ending), _CLUES))

    def attention(self, request: EndingRequest | None, number: int | None) -> str:
        """The picture of attention."""
        return self._of_ending(request, number, lambda ending: picture_html(attention_picture(ending), _ATTENTION))

    def endings(
        self,
        story: str,
        triples: list[list[str]] | None = None,
        mode: str = "greedy",
        num_endings: int = 1,
        temperature: float = 0.7,
        seed: int = 1,
        system: str | None = None,
    ) -> list[dict[str, Any]]:
        """
        For programs: the endings of a story, each with what its words read. Triples are lists of head, relation, tail.
        """
        try:
            rows = enumerate(triples or (), start=1)
            request = EndingRequest(
                self._writer.systems[0] if system is None else system,
                read_sentences(story),
                tuple(read_triple(row, parts) for row, parts in rows),
                mode,  # type: ignore[arg-type]  # a request checks it
                num_endings,
                temperature,
                seed,
            )
            return [_as_dict(explanation) for explanation in self._writer.write(request).endings]
        except Exception as error:
            raise self._gradio.Error(sentence_of(error), print_exception=False) from error

    def _show(self, request: EndingRequest, number: int) -> list[Any]:
        """An ending with its evidence; page and pictures are made when their tabs are opened."""
        written = self._writer.write(request)
        tabs = self._gradio.Tabs(selected="evidence")
        return [ending_html(written, number), tabs, evidence_html(written.endings[number]), "", "", ""]

    def _of_ending(
        self, request: EndingRequest | None, number: int | None, render: Callable[[Explanation], str]
    ) -> str:
        try:
            asked, place = _asked(request, number)
            return render(self._writer.write(asked).endings[place])
        except Exception as error:
            return message_html(sentence_of(error))


def sentence_of(error: Exception) -> str:
    """What a visitor is told: what can be mended, or that the server failed, which then is in its log."""
    if isinstance(error, (ValueError, ImportError)):
        return str(error)
    logger.error("The demo failed.", exc_info=error)
    return _FAILED


def _asked(request: EndingRequest | None, number: int | None) -> tuple[EndingRequest, int]:
    """The request that a page remembers; the oldest pages are forgotten if there are very many."""
    if request is None or number is None:
        raise ValueError(_GONE)
    return request, number


def _as_dict(explanation: Explanation) -> dict[str, Any]:
    return {
        "ending": explanation.ending,
        "log_probability": explanation.log_probability,
        "words": [evidence_of(word) for word in explanation.words],
        "notes": explanation.notes,
    }
