"""The embedded corpus: stories and triples that come with the package."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from typing import TYPE_CHECKING

from ..knowledge.edges import Edge
from .story_records import StoryRecord

if TYPE_CHECKING:
    from ..modeling import IncrementalEncoderTokenizer


def embedded_stories() -> list[StoryRecord]:
    """Return all stories, in a fixed, shuffled order."""
    return [json.loads(line) for line in _read_lines("stories.jsonl")]


def embedded_triples() -> list[tuple[str, str, str]]:
    """Return all triples: head, relation and tail; heads and tails are lemmas."""
    rows = (line.split("\t") for line in _read_lines("triples.tsv"))
    return [(head, relation, tail) for head, relation, tail in rows]


def embedded_edges() -> Iterator[Edge]:
    """Iterate over the triples as edges of weight 1, for building a knowledge table."""
    for head, relation, tail in embedded_triples():
        yield Edge(head, relation, tail)


def embedded_tokenizer() -> IncrementalEncoderTokenizer:
    """Return a tokenizer whose vocabulary and knowledge table cover the embedded stories."""
    from ..knowledge.build import build_knowledge_table
    from ..modeling import IncrementalEncoderTokenizer
    from .vocabulary import build_vocabulary

    sentences = [sentence for story in embedded_stories() for sentence in (*story["context"], story["ending"])]
    vocabulary = build_vocabulary(sentences)
    tokenizer = IncrementalEncoderTokenizer(vocab=vocabulary.ids)
    tokenizer.word_forms = vocabulary.word_forms
    tokenizer.knowledge = build_knowledge_table(embedded_edges(), vocabulary.ids, counts=vocabulary.counts)
    return tokenizer


def _read_lines(name: str) -> list[str]:
    text = files("hf_storyend.assets").joinpath(name).read_text(encoding="utf-8")
    return text.strip().split("\n")
