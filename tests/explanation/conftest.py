"""Small models of every system, and a story with an out-of-vocabulary word."""

from __future__ import annotations

from functools import partial

import pytest
from small_model import small_model

STORY = (
    "Anna put a cake in the oven.",
    "Then Anna and Zorba watched a long film.",
    "The kitchen was full of smoke.",
    "The burnt cake was in the oven.",
)


@pytest.fixture
def story() -> list[str]:
    return list(STORY)


@pytest.fixture
def make_system(tokenizer):
    """`make_system(name, **settings)`: a model that fits the tokenizer."""
    return partial(small_model, tokenizer=tokenizer)


@pytest.fixture
def explain_story(make_system, tokenizer, story):
    """`explain_story(name)`: the explanation of the story, or of another one, by a model of that system."""

    def explain_story(system: str, sentences=None, **settings):
        from hf_storyend.explanation import explain

        return explain(
            make_system(system), tokenizer, sentences or story, **{"max_new_tokens": 6, "num_beams": 1, **settings}
        )

    return explain_story
