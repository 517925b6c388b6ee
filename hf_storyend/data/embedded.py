"""The small corpus that comes with the package: our own stories and the triples they need."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from typing import TypedDict

from ..knowledge import Edge, build_knowledge_table
from ..modeling import IncrementalEncoderTokenizer
from .vocabulary import build_vocabulary


class StoryRecord(TypedDict):
    """One story: the sentences of its context, and its ending."""

    context: list[str]
    ending: str


def embedded_stories() -> list[StoryRecord]:
    """All stories, in a fixed, shuffled order."""
    text = files("hf_storyend.assets").joinpath("stories.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.strip().split("\n")]


def embedded_triples() -> list[tuple[str, str, str]]:
    """Commonsense triples: head, relation, tail, all lemmas."""
    text = files("hf_storyend.assets").joinpath("triples.tsv").read_text(encoding="utf-8")
    rows = (line.split("\t") for line in text.strip().split("\n"))
    return [(head, relation, tail) for head, relation, tail in rows]


def embedded_tokenizer() -> IncrementalEncoderTokenizer:
    """A tokenizer for the embedded stories: their words, and the triples that those retrieve."""
    sentences = [sentence for story in embedded_stories() for sentence in (*story["context"], story["ending"])]
    vocabulary = build_vocabulary(sentences)
    tokenizer = IncrementalEncoderTokenizer(vocab=vocabulary.ids)
    tokenizer.word_forms = vocabulary.word_forms
    tokenizer.knowledge = build_knowledge_table(embedded_edges(), vocabulary.ids, counts=vocabulary.counts)
    return tokenizer


def embedded_edges() -> Iterator[Edge]:
    """The triples as edges of weight 1, for building a knowledge table."""
    for head, relation, tail in embedded_triples():
        yield Edge(head, relation, tail, 1.0, None, None)
