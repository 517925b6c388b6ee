"""What stands on the page: the parts to fill in and the parts to read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .examples import STORIES
from .requests import MAX_ENDINGS, MAX_SEED, MAX_TEMPERATURE, MIN_TEMPERATURE, MODES

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
