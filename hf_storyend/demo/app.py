"""Starting the page on this machine or on a Space."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers.utils import logging

from .handlers import DemoHandlers, EndingWriter, clues_picture, ignore_missing_glyphs
from .requests import (
    MAX_ENDINGS,
    MAX_SEED,
    MAX_TEMPERATURE,
    MIN_TEMPERATURE,
    MODES,
    EndingRequest,
    gradio_library,
    read_sentences,
)

STORIES = (
    "Anna put a cake in the oven.\nShe fell asleep on the couch with her cat.\nThe smoke alarm woke her up.\n"
    "The kitchen was full of smoke.",
    "It was Halloween.\nTom wanted to be a pirate.\nHe and his sister walked from house to house.\n"
    "They came home with bags full of candy.",
    "Sara forgot her umbrella at home. On the way to work it began to rain. A stranger shared his umbrella with her. "
    "They talked all the way to the station.",
)


_MODES_INFO = "Greedy: the likeliest word each time. Beams: the likeliest endings. Samples: drawn by chance."
_TRIPLES_INFO = (
    "Knowledge for this story only, one triple a line: head, relation, tail. The head must be a word of the story; "
    "relations are those of ConceptNet, such as AtLocation, Causes, HasProperty, IsA, UsedFor."
)


@dataclass(frozen=True)
class Question:
    """The story, how its ending is to be written, and the button."""

    story: Any
    mode: Any
    button: Any


@dataclass(frozen=True)
class Options:
    """What need not be touched."""

    system: Any
    triples: Any
    num_endings: Any
    temperature: Any
    seed: Any


@dataclass(frozen=True)
class Answer:
    """The message or the endings, and the tabs about the one that is looked at."""

    message: Any
    area: Any
    endings: Any
    ending: Any
    tabs: Any
    evidence: Any
    page_tab: Any
    page: Any
    clues_tab: Any
    clues: Any
    attention_tab: Any
    attention: Any

    @property
    def of_an_ending(self) -> list[Any]:
        """What changes with the ending that is looked at."""
        return [self.ending, self.tabs, self.evidence, self.page, self.clues, self.attention]


def add_question(gradio: Any) -> Question:
    """The part that the cursor starts in."""
    story = gradio.Textbox(
        STORIES[0],
        label="Story",
        info="One sentence a line, or as running text.",
        lines=5,
        autofocus=True,
        elem_id="story",
    )
    modes = [(name.capitalize(), name) for name in MODES]
    mode = gradio.Radio(modes, value=MODES[0], label="How", info=_MODES_INFO, elem_id="mode")
    return Question(story, mode, gradio.Button("Write the ending", variant="primary", elem_id="write"))


def add_options(gradio: Any, systems: list[str], story: Any) -> Options:
    """The part for those who want more, and stories that can be put into the box."""
    system = gradio.Radio(systems, value=systems[0], label="System", elem_id="system")
    with gradio.Accordion("Own triples", open=False, elem_id="own"):
        triples = gradio.Textbox(
            "", label="Triples", info=_TRIPLES_INFO, lines=3, placeholder="oven, UsedFor, bake", elem_id="triples"
        )
    with gradio.Accordion("Number of endings, temperature, seed", open=False, elem_id="settings"):
        num_endings = gradio.Slider(
            1, MAX_ENDINGS, 3, step=1, label="Number of endings", info="With beams or samples.", elem_id="number"
        )
        temperature = gradio.Slider(
            MIN_TEMPERATURE,
            MAX_TEMPERATURE,
            0.7,
            step=0.05,
            label="Temperature",
            info="With samples: low is cautious, high is wild.",
            elem_id="temperature",
        )
        seed = gradio.Number(
            1,
            label="Seed",
            info="With samples: the same seed gives the same endings.",
            minimum=0,
            maximum=MAX_SEED,
            elem_id="seed",
        )
    gradio.Examples([[text] for text in STORIES], story, label="Stories to start from", elem_id="examples")
    return Options(system, triples, num_endings, temperature, seed)


def add_answer(gradio: Any) -> Answer:
    """The part to read; hidden until there is something."""
    message = gradio.HTML(elem_id="message", apply_default_css=False)
    with gradio.Column(visible=False, elem_id="results") as area:
        endings = gradio.Radio([], label="Endings", visible=False, elem_id="endings")
        ending = gradio.HTML(elem_id="ending", apply_default_css=False)
        with gradio.Tabs(selected="evidence", elem_id="why", overflow_behavior="wrap") as tabs:
            _, evidence = _add_tab(gradio, "evidence", "Evidence")
            page_tab, page = _add_tab(gradio, "page", "Look around")
            clues_tab, clues = _add_tab(gradio, "clues", "Clues")
            attention_tab, attention = _add_tab(gradio, "attention", "Attention")
    return Answer(
        message=message,
        area=area,
        endings=endings,
        ending=ending,
        tabs=tabs,
        evidence=evidence,
        page_tab=page_tab,
        page=page,
        clues_tab=clues_tab,
        clues=clues,
        attention_tab=attention_tab,
        attention=attention,
    )


def _add_tab(gradio: Any, name: str, title: str) -> tuple[Any, Any]:
    with gradio.Tab(title, id=name) as tab:
        return tab, gradio.HTML(elem_id=name, apply_default_css=False)


_TITLE = "Story endings, and why"
_HEADER = f"""<h1>{_TITLE}</h1>
<p>Write the beginning of a story. The model ends it, and shows what it read for each word.
<span class="keys"><kbd>Ctrl</kbd>+<kbd>Enter</kbd> writes.</span></p>"""
# Two at a time keep a processor busy; drawing is slow, and must not keep anyone from an ending.
_WRITING: dict[str, Any] = {"concurrency_id": "writing", "concurrency_limit": 2}
_DRAWING: dict[str, Any] = {"concurrency_id": "drawing", "concurrency_limit": 1}


def build_demo(models: Sequence[str] = ()) -> Any:
    """
    The page as Gradio `Blocks`; `launch_demo` also starts it.

    Args:
        models: Directories of models, or names on the Hub; the model that comes with the package if there are none.
    """
    gradio = gradio_library()
    writer = EndingWriter(models)
    handlers = DemoHandlers(writer)
    with gradio.Blocks(title=_TITLE, analytics_enabled=False) as demo:
        gradio.HTML(_HEADER, elem_id="header", apply_default_css=False)
        # In this order below each other on a phone, so that an ending stands where it was asked for.
        with gradio.Row(equal_height=False, elem_id="parts"):
            with gradio.Column(min_width=0, elem_id="question"):
                question = add_question(gradio)
            with gradio.Column(min_width=0, elem_id="answer"):
                answer = add_answer(gradio)
            with gradio.Column(min_width=0, elem_id="options"):
                options = add_options(gradio, writer.systems, question.story)
        _connect(gradio, handlers, question, options, answer)
        gradio.api(handlers.endings, api_name="endings", **_WRITING)
    demo.queue()
    demo.writer = writer
    return demo


def _connect(gradio: Any, handlers: DemoHandlers, question: Question, options: Options, answer: Answer) -> None:
    hidden: dict[str, Any] = {"api_visibility": "private", "show_progress": "minimal"}
    # What the page shows endings of: what is in the boxes may have been changed since.
    request = gradio.State()
    gradio.on(
        [question.button.click, question.story.submit, options.triples.submit],
        handlers.write,
        [
            options.system,
            question.story,
            options.triples,
            question.mode,
            options.num_endings,
            options.temperature,
            options.seed,
        ],
        [answer.message, answer.area, request, answer.endings, *answer.of_an_ending],
        **hidden,
        **_WRITING,
    )
    chosen = [request, answer.endings]
    answer.endings.input(handlers.choose, chosen, answer.of_an_ending, **hidden, **_WRITING)
    answer.page_tab.select(handlers.page, chosen, answer.page, **hidden, **_WRITING)
    answer.clues_tab.select(handlers.clues, chosen, answer.clues, **hidden, **_DRAWING)
    answer.attention_tab.select(handlers.attention, chosen, answer.attention, **hidden, **_DRAWING)


_PARTS = Path(__file__).parent
# The last pages that were open, for each of which Gradio keeps what it shows.
_MAX_PAGES = 256


def launch_demo(
    models: Sequence[str] = (),
    *,
    host: str | None = None,
    port: int | None = None,
    share: bool | None = None,
    open_browser: bool = False,
) -> tuple[Any, str]:
    """
    Start the page and give it, as Gradio `Blocks`, with its address; `block_thread()` of it waits for Ctrl+C.

    Args:
        models: Directories of models, or names on the Hub; the model that comes with the package if there are none.
        host: Address to listen at; this machine only unless given, or set by `GRADIO_SERVER_NAME`.
        port: Port to listen at; the first free one from 7860 on unless given.
        share: Let anyone in by a tunnel of Gradio's servers; unless given, only where nothing else works, as in Colab.
        open_browser: Whether to open the page in a browser.
    """
    demo = build_demo(models)
    logging.disable_progress_bar()
    ignore_missing_glyphs()
    try:
        _, local_url, share_url = demo.launch(
            server_name=host,
            server_port=port,
            share=share,
            inbrowser=open_browser,
            prevent_thread_lock=True,
            quiet=True,
            **_page_settings(),
        )
    except OSError as error:
        if port is None or "empty port" not in str(error):
            raise
        raise OSError(f"Port {port} can't be used; maybe something uses it already: choose another.") from error
    # While a browser fetches the page, the model is read: the first visitor waits no longer than the second.
    _warm_up(demo.writer)
    return demo, share_url or local_url


def _warm_up(writer: EndingWriter) -> None:
    """Write once and draw once, so that all that takes long to load is loaded."""
    written = writer.write(EndingRequest(writer.systems[0], read_sentences(STORIES[0])))
    # Without matplotlib, whoever opens a picture is told.
    with suppress(ImportError):
        clues_picture(written.endings[0])


def _page_settings() -> dict[str, Any]:
    """Looks, keys, and nothing that is fetched from elsewhere or recorded."""
    gradio = gradio_library()
    # Fonts of the visitor's own machine: nothing to fetch. Grey that can be read.
    theme = gradio.themes.Default(
        primary_hue="blue", font=["system-ui", "sans-serif"], font_mono=["ui-monospace", "monospace"]
    ).set(
        block_info_text_color="*neutral_600",
        block_info_text_color_dark="*neutral_300",
        body_text_color_subdued="*neutral_600",
        body_text_color_subdued_dark="*neutral_300",
        button_primary_background_fill="*primary_700",
        button_primary_background_fill_hover="*primary_800",
    )
    return {
        "theme": theme,
        "css": (_PARTS / "page.css").read_text(encoding="utf-8"),
        "js": (_PARTS / "page.js").read_text(encoding="utf-8"),
        "footer_links": ["api"],
        "run_history": False,
        "ssr_mode": False,
        "state_session_capacity": _MAX_PAGES,
    }
