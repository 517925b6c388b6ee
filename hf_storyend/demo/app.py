"""The page: its parts, and what happens when something is pressed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .components import Answer, Options, Question, add_answer, add_options, add_question
from .handlers import DemoHandlers
from .libraries import gradio_library
from .writing import EndingWriter

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
