"""A split of eleven stories, as text and tokenised."""

import random

import pytest
from datasets import Dataset, DatasetDict

from hf_storyend.data.batching import tokenise_stories

CONTEXTS = [
    ["Anna put a cake in the oven.", "They watched a long film."],
    ["Tom saw mice."],
    ["They didn't hear the timer!", "The kitchen was full of smoke.", "Why?"],
]
ENDINGS = ["The cake was burnt.", "Tom opened the window, and Anna saw the mice.", "They burn cakes."]


@pytest.fixture
def contexts() -> list[list[str]]:
    return CONTEXTS


@pytest.fixture
def stories() -> Dataset:
    rng = random.Random(0)
    rows = [{"context": rng.choice(CONTEXTS), "ending": rng.choice(ENDINGS)} for _ in range(11)]
    return Dataset.from_list(rows)


@pytest.fixture
def tokenised(stories, tokenizer) -> Dataset:
    return tokenise_stories(DatasetDict({"test": stories}), tokenizer)["test"]
