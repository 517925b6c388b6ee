"""The demo page, in Gradio: its layout, its events, and the server."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers.utils.logging import disable_progress_bar

from ..pretrained import use_threads_of_one_story
from .documents import document_routes
from .generator import EndingGenerator
from .handlers import DemoHandlers, import_gradio
from .limits import CACHE_SECONDS, MAX_QUEUE, LimitRequests, RecentSessions, max_body_bytes
from .options import DEFAULT_LIMITS, StoryLimits
from .rendering import READING, clues_html, ignore_missing_glyphs
from .requests import (
    MAX_ENDINGS,
    MAX_SEED,
    MAX_TEMPERATURE,
    MAX_TOP_K,
    MIN_TEMPERATURE,
    MIN_TOP_P,
    EndingRequest,
    parse_story,
)

EXAMPLES = (
    "Anna put a cake in the oven.\nShe fell asleep on the couch with her cat.\nThe smoke alarm woke her up.\n"
    "The kitchen was full of smoke.",
    "It was Halloween.\nTom wanted to be a pirate.\nHe and his sister walked from house to house.\n"
    "They came home with bags full of candy.",
    "Sara forgot her umbrella at home. On the way to work it began to rain. A stranger shared his umbrella with her. "
    "They talked all the way to the station.",
    "Omar wanted to buy a bike. He washed cars all summer. He put every dollar into a jar. In September the jar was "
    "full.",
    "Nina had a big test in math. She studied every night for two weeks. Her hands were shaking when she turned the "
    "page. The teacher gave the tests back on Friday.",
    "Ben found a stray dog behind the school. It was hungry and cold. He took it home and gave it some food. His "
    "mother came into the kitchen.",
    "The family went camping in the woods. They put up the tent and lit a fire. At night they heard a strange noise. "
    "A bear stood in front of the tent.",
    "Kate was the new girl in class. Nobody talked to her at lunch. She drew a picture in her notebook. Another girl "
    "sat down beside her.",
    "Leo's car broke down on the highway. His phone had no battery. He waited by the road for an hour. At last a "
    "truck stopped.",
    "Grandma baked cookies for the school fair. The boys smelled them in the hall. They crept into the kitchen. When "
    "she came back the plate was empty.",
)
# Stories with a triple that changes the ending of the package's model; tests/demo/test_default_model.py tries them.
TRIPLE_EXAMPLES = (
    (
        "Omar practised the piano every evening. On Sunday there was a concert. His hands were shaking.",
        "concert, Causes, clap",
    ),
    (
        "Mei put a cake in the oven. She fell asleep. The smoke alarm woke her up.",
        "cake, ReceivesAction, burn",
    ),
    (
        "Kate carried a tray of glasses. The floor was wet. She walked too fast.",
        "floor, Causes, slip",
    ),
    (
        "Lily found an old key in the attic. She tried it on every lock. At last a box opened.",
        "key, UsedFor, treasure",
    ),
)
_TITLE = "Story endings, and why"
_PAPER = "https://arxiv.org/abs/1808.10113"
_HEADER = f"""<h1>{_TITLE}</h1>
<p>Write the beginning of a story. The model ends it, and shows what each word came from.
<span class="keys"><kbd>Ctrl</kbd>+<kbd>Enter</kbd> generates.</span></p>
<p class="reading">{READING}</p>
<p class="links"><a href="{_PAPER}" target="_blank" rel="noopener">Paper</a> ·
<a href="code" target="_blank">Code</a> · <a href="card" target="_blank">Model card</a></p>"""
_DECODING_INFO = (
    "Greedy: the most likely word each time. Beam search: the most likely endings. Sampling: random endings."
)
_TRIPLES_INFO = (
    "Knowledge for this story only, one triple a line: head, relation, tail. The head must be a word of the story, "
    "the tail is what becomes likelier."
)
# Two at a time keep a processor busy. Drawing is slow, and must not delay endings.
_GENERATING: dict[str, Any] = {"concurrency_id": "generating", "concurrency_limit": 2}
_DRAWING: dict[str, Any] = {"concurrency_id": "drawing", "concurrency_limit": 1}
# Open pages whose state Gradio keeps.
_MAX_PAGES = 256
_ASSETS = Path(__file__).parent


def launch_demo(
    models: Sequence[str] = (),
    *,
    host: str | None = None,
    port: int | None = None,
    share: bool | None = None,
    open_browser: bool = False,
    limits: StoryLimits = DEFAULT_LIMITS,
) -> tuple[Any, str]:
    """
    Start the demo in the background.

    Args:
        models: Model directories or Hub names; default: the model that comes with the package.
        host: Address to listen at; default: `GRADIO_SERVER_NAME`, or this machine only.
        port: Port to listen at; default: the first free one from 7860 on.
        share: Whether to serve a public address through a tunnel of Gradio's servers; default: only where nothing else
            works, as in Colab.
        open_browser: Whether to open the page in a browser.
        limits: Longest story that is taken.

    Returns:
        The Gradio `Blocks`, whose `block_thread()` waits for Ctrl+C, and the address.
    """
    use_threads_of_one_story()
    demo = build_demo(models, limits)
    disable_progress_bar()
    ignore_missing_glyphs()
    try:
        _, local_url, share_url = demo.launch(
            server_name=host,
            server_port=port,
            share=share,
            inbrowser=open_browser,
            prevent_thread_lock=True,
            quiet=True,
            **_launch_settings(limits, demo.generator),
        )
    except OSError as error:
        if port is None or "empty port" not in str(error):
            raise
        raise OSError(f"Port {port} can't be used; maybe another program uses it: choose another.") from error
    # The browser fetches the page meanwhile: the first visitor waits no longer than the second.
    _warm_up(demo.generator)
    return demo, share_url or local_url


def _warm_up(generator: EndingGenerator) -> None:
    """Generate and draw once, so that models and libraries are loaded."""
    generated = generator.generate(EndingRequest(generator.systems[0], parse_story(EXAMPLES[0])))
    # Without matplotlib, the tabs of pictures show the error.
    with suppress(ImportError):
        clues_html(generated.endings[0])


def _launch_settings(limits: StoryLimits, generator: EndingGenerator) -> dict[str, Any]:
    """Return theme, style, keys and pages beside the demo; nothing is fetched from elsewhere or recorded."""
    gradio, middleware = import_gradio(), importlib.import_module("starlette.middleware")
    # Fonts of the visitor's machine: nothing to fetch. Greys with enough contrast.
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
        "css": (_ASSETS / "page.css").read_text(encoding="utf-8"),
        "js": (_ASSETS / "page.js").read_text(encoding="utf-8"),
        "footer_links": ["api"],
        "run_history": False,
        "ssr_mode": False,
        "state_session_capacity": _MAX_PAGES,
        "max_file_size": 1,
        "app_kwargs": {
            "middleware": [middleware.Middleware(LimitRequests, max_body_bytes=max_body_bytes(limits))],
            "routes": document_routes(dict(zip(generator.systems, generator.paths, strict=True))),
        },
    }


def build_demo(models: Sequence[str] = (), limits: StoryLimits = DEFAULT_LIMITS) -> Any:
    """
    Build the page without starting it.

    Args:
        models: Model directories or Hub names; default: the model that comes with the package.
        limits: Longest story that is taken.

    Returns:
        Gradio `Blocks`.
    """
    gradio = import_gradio()
    generator = EndingGenerator(models)
    handlers = DemoHandlers(generator, limits)
    with gradio.Blocks(title=_TITLE, analytics_enabled=False, delete_cache=CACHE_SECONDS) as demo:
        gradio.HTML(_HEADER, elem_id="header", apply_default_css=False)
        # On a phone they stand below each other in this order: the ending right below the button.
        with gradio.Row(equal_height=False, elem_id="parts"):
            with gradio.Column(min_width=0, elem_id="question"):
                inputs = _add_inputs(gradio)
            with gradio.Column(min_width=0, elem_id="answer"):
                results = _add_results(gradio)
            with gradio.Column(min_width=0, elem_id="options"):
                settings = _add_settings(gradio, generator.systems, inputs.story)
        _connect(gradio, handlers, inputs, settings, results)
        gradio.api(handlers.endings, api_name="endings", **_GENERATING)
    # The routes of an open API run without the queue, forty requests at a time.
    demo.queue(max_size=MAX_QUEUE, api_open=False)
    demo._queue.pending_messages_per_session = RecentSessions()
    demo._queue.pending_event_ids_session = RecentSessions()
    demo.generator = generator
    return demo


@dataclass(frozen=True)
class _Inputs:
    """Components for the story."""

    story: Any
    decoding: Any
    button: Any


@dataclass(frozen=True)
class _Settings:
    """Components with defaults."""

    system: Any
    own: Any
    head: Any
    relation: Any
    tail: Any
    add: Any
    triples: Any
    num_endings: Any
    temperature: Any
    seed: Any
    top_p: Any
    top_k: Any

    @property
    def sampling(self) -> list[Any]:
        """Components of sampling, in the order of `DemoHandlers.generate`."""
        return [self.temperature, self.seed, self.top_p, self.top_k]


@dataclass(frozen=True)
class _Results:
    """Components for a message or endings, and the tabs of the chosen ending."""

    message: Any
    area: Any
    endings: Any
    ending: Any
    tabs: Any
    words: Any
    page_tab: Any
    page: Any
    clues_tab: Any
    clues: Any
    attention_tab: Any
    attention: Any

    @property
    def of_ending(self) -> list[Any]:
        """Components that change with the chosen ending."""
        return [self.ending, self.tabs, self.words, self.page, self.clues, self.attention]


def _add_inputs(gradio: Any) -> _Inputs:
    story = gradio.Textbox(
        EXAMPLES[0],
        label="Story",
        info="One sentence a line, or as running text.",
        lines=5,
        autofocus=True,
        buttons=["copy"],
        elem_id="story",
    )
    choices = [("Greedy", "greedy"), ("Beam search", "beam_search"), ("Sampling", "sampling")]
    decoding = gradio.Radio(choices, value="beam_search", label="Decoding", info=_DECODING_INFO, elem_id="decoding")
    return _Inputs(story, decoding, gradio.Button("Generate the ending", variant="primary", elem_id="generate"))


def _add_settings(gradio: Any, systems: list[str], story: Any) -> _Settings:
    system = gradio.Radio(systems, value=systems[0], label="System", elem_id="system")
    with gradio.Accordion("Your triples", open=False, elem_id="own") as own:
        triple_parts = _add_triple_fields(gradio)
        triples = gradio.Textbox(
            "", label="Triples", info=_TRIPLES_INFO, lines=3, placeholder="oven, UsedFor, bake", elem_id="triples"
        )
        gradio.Examples(
            [list(example) for example in TRIPLE_EXAMPLES],
            [story, triples],
            label="Stories whose ending changes with a triple",
            elem_id="triple-examples",
        )
    with gradio.Accordion("Number of endings, sampling", open=False, elem_id="settings"):
        num_endings = gradio.Slider(
            1,
            MAX_ENDINGS,
            3,
            step=1,
            label="Number of endings",
            info="With beam search or sampling.",
            elem_id="number",
        )
        sampling = _add_sampling(gradio)
    gradio.Examples([[text] for text in EXAMPLES], story, label="Example stories", elem_id="examples")
    return _Settings(system, own, *triple_parts, triples, num_endings, *sampling)


def _add_triple_fields(gradio: Any) -> tuple[Any, Any, Any, Any]:
    """Add head, relation and tail of one triple, and a button that adds it to the list."""
    with gradio.Row(elem_id="triple"):
        head = gradio.Textbox("", label="Head", placeholder="oven", min_width=80, max_lines=1, elem_id="head")
        relation = gradio.Dropdown([], label="Relation", min_width=130, elem_id="relation")
        tail = gradio.Textbox("", label="Tail", placeholder="burn", min_width=80, max_lines=1, elem_id="tail")
    return head, relation, tail, gradio.Button("Add the triple", size="sm", elem_id="add")


def _add_sampling(gradio: Any) -> tuple[Any, Any, Any, Any]:
    """Add temperature, seed, top-p and top-k."""
    temperature = gradio.Slider(
        MIN_TEMPERATURE,
        MAX_TEMPERATURE,
        0.7,
        step=0.05,
        label="Temperature",
        info="With sampling: higher is more random.",
        elem_id="temperature",
    )
    top_p = gradio.Slider(
        MIN_TOP_P,
        1.0,
        1.0,
        step=0.05,
        label="Top-p",
        info="With sampling: only the likeliest words that together have this probability; 1: all.",
        elem_id="top-p",
    )
    top_k = gradio.Slider(
        0,
        MAX_TOP_K,
        0,
        step=1,
        label="Top-k",
        info="With sampling: only the k likeliest words; 0: all.",
        elem_id="top-k",
    )
    seed = gradio.Number(
        1,
        label="Seed",
        info="With sampling: the same seed gives the same endings.",
        minimum=0,
        maximum=MAX_SEED,
        elem_id="seed",
    )
    return temperature, seed, top_p, top_k


def _add_results(gradio: Any) -> _Results:
    message = gradio.HTML(elem_id="message", apply_default_css=False)
    with gradio.Column(visible=False, elem_id="results") as area:
        endings = gradio.Radio([], label="Endings", visible=False, elem_id="endings")
        ending = gradio.HTML(elem_id="ending", apply_default_css=False)
        with gradio.Tabs(selected="words", elem_id="why", overflow_behavior="wrap") as tabs:
            _, words = _add_tab(gradio, "words", "Words")
            page_tab, page = _add_tab(gradio, "page", "Explore")
            clues_tab, clues = _add_tab(gradio, "clues", "Clues")
            attention_tab, attention = _add_tab(gradio, "attention", "Attention")
    return _Results(
        message=message,
        area=area,
        endings=endings,
        ending=ending,
        tabs=tabs,
        words=words,
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


def _connect(gradio: Any, handlers: DemoHandlers, inputs: _Inputs, settings: _Settings, results: _Results) -> None:
    hidden: dict[str, Any] = {"api_visibility": "private", "show_progress": "minimal"}
    # The request whose endings the page shows: the inputs may have changed since.
    request = gradio.State()
    gradio.on(
        [inputs.button.click, inputs.story.submit, settings.triples.submit],
        handlers.generate,
        [
            settings.system,
            inputs.story,
            settings.triples,
            inputs.decoding,
            settings.num_endings,
            *settings.sampling,
        ],
        [results.message, results.area, request, results.endings, *results.of_ending],
        **hidden,
        **_GENERATING,
    )
    gradio.on(
        [settings.add.click, settings.tail.submit],
        handlers.add_triple,
        [settings.triples, settings.head, settings.relation, settings.tail],
        [results.message, settings.triples, settings.head, settings.tail],
        **hidden,
    )
    # Relations are those of the model, which is loaded first: not before somebody wants to choose one.
    known = [settings.system, settings.relation]
    opened = [settings.system.change, settings.own.expand]
    gradio.on(opened, handlers.relations, known, settings.relation, **hidden, **_GENERATING)
    chosen = [request, results.endings]
    results.endings.input(handlers.choose, chosen, results.of_ending, **hidden, **_GENERATING)
    # They show their own sign that something is being made; Gradio's would hide it.
    hidden = {**hidden, "show_progress": "hidden"}
    results.page_tab.select(handlers.page, chosen, results.page, **hidden, **_GENERATING)
    results.clues_tab.select(handlers.clues, chosen, results.clues, **hidden, **_DRAWING)
    results.attention_tab.select(handlers.attention, chosen, results.attention, **hidden, **_DRAWING)
