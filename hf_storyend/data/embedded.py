"""The small corpus that comes with the package: our own stories and the triples they need."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import TypedDict

from ..modeling import IncrementalEncoderTokenizer, KnowledgeTable
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
    """A tokenizer for the embedded stories: their words, and the triples whose words are among them."""
    sentences = [sentence for story in embedded_stories() for sentence in (*story["context"], story["ending"])]
    vocabulary = build_vocabulary(sentences)
    triples = [triple for triple in embedded_triples() if {triple[0], triple[2]} <= vocabulary.ids.keys()]
    tokenizer = IncrementalEncoderTokenizer(vocab=vocabulary.ids)
    tokenizer.word_forms = vocabulary.word_forms
    tokenizer.knowledge = KnowledgeTable(sorted({relation for _, relation, _ in triples}))
    tokenizer.add_triples(triples)
    return tokenizer
