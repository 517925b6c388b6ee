"""What happens when something is pressed: values of the page in, values of the page out, and never an exception."""

from __future__ import annotations

import tempfile
import threading
import warnings
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import Any

import torch
from transformers.utils import logging

from ..explanation.explain_story import explain_ending
from ..explanation.inference import eval_mode as evaluating
from ..explanation.story import TokenizedStory as StoryTensors, find_triples, tokenize_story as read_story
from ..explanation.result import EndingWord, Explanation, WeightedWord as ReadWord
from .requests import (
    EndingRequest,
    LoadedSystem,
    Mode,
    OwnTriple,
    SystemShelf,
    gradio_library,
    read_sentences,
    read_triple,
    read_triples,
)


def clues_picture(explanation: Explanation) -> bytes:
    """Arrows between the words of sentences, as in the paper's Figure 3."""
    return _drawn(explanation.draw_clues)


def attention_picture(explanation: Explanation) -> bytes:
    """All attention matrices, as in the paper's Figure 5."""
    return _drawn(explanation.draw_attention)


def ignore_missing_glyphs() -> None:
    """Letters that matplotlib's font lacks are drawn by the browser: text in an SVG stays text."""
    warnings.filterwarnings("ignore", message="Glyph .* missing from font")


def _drawn(draw: Callable[[Path], None]) -> bytes:
    with tempfile.TemporaryDirectory(prefix="storyend-") as folder:
        path = Path(folder) / "picture.svg"
        draw(path)
        return path.read_bytes()


# Less can't be told from nothing by two digits, and more is not read.
_SMALLEST, _MAX_READS = 0.005, 3


def message_html(text: str) -> str:
    """A sentence that says what to mend."""
    return f'<p class="problem" role="alert">{escape(text)}</p>'


def ending_html(written: WrittenEndings, number: int) -> str:
    """An ending, the one without the visitor's triples beside it if there is one."""
    explanation = written.endings[number]
    parts = [f'<p class="ending" dir="auto">{escape(ending_text(explanation))}</p>']
    if written.without_triples is not None and number == 0:
        before = escape(written.without_triples or "(an ending without words)")
        parts.append(f'<p class="before">Without your triples: <q dir="auto">{before}</q></p>')
    return "".join(parts)


def ending_text(explanation: Explanation) -> str:
    """The ending as a person reads it."""
    return explanation.ending or "(an ending without words)"


def evidence_html(explanation: Explanation) -> str:
    """A table with a row for each word: how likely it was, and the words and triples that it read most."""
    columns = _columns(explanation)
    header = "".join(f'<th scope="col">{name}</th>' for name in ("Word", *columns))
    rows = "".join(_row(word, columns) for word in explanation.words)
    notes = "".join(f"<li>{escape(note)}</li>" for note in explanation.notes)
    return (
        f'<table class="evidence"><thead><tr>{header}</tr></thead><tbody>{rows}</tbody></table>'
        f'<p class="sum">Log probability of the ending: {explanation.log_probability:.2f}.</p>'
        f'<ul class="notes">{notes}</ul>'
    )


def page_html(explanation: Explanation) -> str:
    """The explanation's own page in a frame that may run its script but reach nothing outside."""
    page = escape(explanation.to_html(), quote=True)
    # What is in a sandbox can't be measured. Too low is no harm: then it scrolls.
    sentences = [*explanation.sentences, [word.word for word in explanation.words]]
    num_lines = sum(1 + sum(len(word) + 2 for word in words) // 36 for words in sentences)
    return (
        '<iframe class="page" sandbox="allow-scripts" title="What each word of story and ending read" '
        f'style="height:{44 + 4 * num_lines}rem" srcdoc="{page}"></iframe>'
    )


def picture_html(svg: bytes, description: str) -> str:
    """A picture, as an image: whatever it holds, an image runs nothing."""
    source = f"data:image/svg+xml;base64,{b64encode(svg).decode()}"
    # Focusable, so that keys can scroll it where it is wider than the screen.
    return (
        f'<div class="picture" tabindex="0" role="group" aria-label="{escape(description)}">'
        f'<img src="{source}" alt="{escape(description)}"></div>'
    )


def evidence_of(word: EndingWord) -> dict[str, Any]:
    """The same for programs: the words and triples that a word of the ending read most."""
    return {
        "word": word.word,
        "probability": word.probability,
        "words": [asdict(read) for read in _top(word.state_attention)],
        "triples": [asdict(read) for read in _top(word.triple_attention or ())],
        "copied": [asdict(read) for read in _top(word.copied or ())],
    }


def _columns(explanation: Explanation) -> dict[str, Callable[[EndingWord], str]]:
    columns: dict[str, Callable[[EndingWord], str]] = {
        "Probability": lambda word: f"{word.probability:.3f}",
        "Words it read": lambda word: _word_reads(word.state_attention),
    }
    if explanation.graphs is not None:
        columns["Triples it read"] = lambda word: _triple_reads(word)
    if explanation.system["copy"]:
        columns["Copied from"] = lambda word: _word_reads(word.copied or ())
    return columns


def _row(word: EndingWord, columns: dict[str, Callable[[EndingWord], str]]) -> str:
    # The label is for narrow screens, where cells stand below each other.
    cells = "".join(f'<td data-label="{name}">{cell(word)}</td>' for name, cell in columns.items())
    return f'<tr><th scope="row" dir="auto">{escape(word.word)}</th>{cells}</tr>'


def _word_reads(reads: Sequence[ReadWord]) -> str:
    return _chips("state", ((read.word, f"sentence {read.sentence}", read.weight) for read in _top(reads)))


def _triple_reads(word: EndingWord) -> str:
    chips = (
        (f"{read.head} · {read.relation} · {read.tail}", f"at {read.word} in sentence {read.sentence}", read.weight)
        for read in _top(word.triple_attention or ())
    )
    empty = word.empty_graph_attention or 0.0
    nothing = f' <small class="none">no triple {empty:.2f}</small>' if empty >= _SMALLEST else ""
    return _chips("knowledge", chips) + nothing


def _chips(kind: str, reads: Iterable[tuple[str, str, float]]) -> str:
    chips = [
        f'<span class="read {kind}" style="--weight:{weight:.3f}" title="{escape(place)}" dir="auto">'
        f"{escape(text)} <small>{weight:.2f}</small></span>"
        for text, place, weight in reads
    ]
    return " ".join(chips) or "–"


def _top(reads: Sequence[Any]) -> list[Any]:
    return [read for read in reads[:_MAX_READS] if read.weight >= _SMALLEST]


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
