"""The examples of the page, with the model that they are made for."""

from __future__ import annotations

import pytest

pytest.importorskip("gradio", reason="gradio is not installed")

from hf_storyend.demo import EndingGenerator, EndingRequest  # noqa: E402
from hf_storyend.demo.app import TRIPLE_EXAMPLES  # noqa: E402
from hf_storyend.demo.requests import parse_story, parse_triples  # noqa: E402


@pytest.mark.slow
def test_the_triples_of_the_examples_change_the_ending_of_the_packages_model():
    generator = EndingGenerator()
    (system,) = generator.systems
    for story, triples in TRIPLE_EXAMPLES:
        generated = generator.generate(EndingRequest(system, parse_story(story), parse_triples(triples)))
        before, after = generated.without_triples.ending, generated.endings[0].ending
        assert before != after, f"choose another example: {story} {triples}"
