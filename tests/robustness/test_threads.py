"""One model and one tokenizer serve many threads at once, each with the answers of one alone."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import torch
from transformers import pipeline

from hf_storyend import IncrementalEncoderConfig, IncrementalEncoderForEndingGeneration
from hf_storyend.explanation import explain
from hf_storyend.systems import SYSTEMS, match_tokenizer

NUM_THREADS = 16
STORIES = [
    "Anna put a cake in the oven. Then Anna and Tom watched a long film.",
    "They didn't hear the timer! The kitchen was full of smoke.",
    "Tom opened the window. We saw mice in the kitchen on Friday. Zorba ate cakes.",
    "Trick or treat. They burn cakes.",
]


def together(answer: Callable[[int], object]) -> list[object]:
    """What threads that start at one moment answer."""
    start = Barrier(NUM_THREADS)

    def wait_and_answer(thread: int) -> object:
        start.wait(600)
        return answer(thread)

    with ThreadPoolExecutor(NUM_THREADS) as threads:
        return list(threads.map(wait_and_answer, range(NUM_THREADS)))


def fit(tokenizer, name: str) -> IncrementalEncoderForEndingGeneration:
    torch.manual_seed(0)
    settings = {**SYSTEMS[name].settings, "num_copy_slots": 3}
    config = IncrementalEncoderConfig.for_tokenizer(tokenizer, embedding_size=8, hidden_size=12, **settings)
    match_tokenizer(tokenizer, config)
    return IncrementalEncoderForEndingGeneration(config).eval()


def story_of(thread: int) -> str:
    return STORIES[thread % len(STORIES)]


BEAMS = {"num_beams": 3, "num_return_sequences": 2}


@pytest.mark.parametrize(
    ("name", "mode"),
    [("ie-msa-ca", {}), ("ie-msa-ga-copy", BEAMS), ("hlstm-msa-ca", {}), ("seq2seq", {})],
    ids=lambda value: value if isinstance(value, str) else ("beams" if value else "greedy"),
)
def test_generate(tokenizer, name, mode):
    model = fit(tokenizer, name)

    def write(thread: int) -> list[str]:
        inputs = tokenizer(story_of(thread), return_tensors="pt")
        endings = model.generate(**inputs, max_new_tokens=4, **mode)
        return tokenizer.batch_decode(endings, context=story_of(thread))

    # The threads first: they find nothing prepared by a call before them.
    answers = together(write)
    assert answers == [write(thread) for thread in range(NUM_THREADS)]
    assert len({str(answer) for answer in answers}) > 1


def test_the_tokenizer_with_knowledge_for_one_call(tokenizer):
    def read(thread: int) -> list:
        triples = [("oven", "UsedFor", ("film", "timer", "window", "smoke")[thread % 4])]
        return tokenizer(STORIES[0], triples=triples)["triple_ids"]

    assert together(read) == [read(thread) for thread in range(NUM_THREADS)]


def test_the_pipeline(tokenizer, model):
    write = pipeline("story-ending", model=model, tokenizer=tokenizer)
    answers = together(lambda thread: write(story_of(thread), max_new_tokens=5))
    for thread, answer in enumerate(answers):
        assert answer == write(story_of(thread), max_new_tokens=5)


def test_explain(tokenizer, model):
    model.train()
    answers = together(lambda thread: explain(model, tokenizer, story_of(thread), max_new_tokens=4).to_json())
    assert answers == [explain(model, tokenizer, story_of(t), max_new_tokens=4).to_json() for t in range(NUM_THREADS)]
    assert model.training
