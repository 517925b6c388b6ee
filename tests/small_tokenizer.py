"""A small tokenizer with knowledge, which most tests start from."""

from __future__ import annotations

from hf_storyend import IncrementalEncoderTokenizer, KnowledgeTable
from hf_storyend.data.vocabulary import build_vocabulary

SENTENCES = [
    "Anna put a cake in the oven.",
    "Then Anna and Tom watched a long film.",
    "They didn't hear the timer!",
    "The kitchen was full of smoke.",
    "Tom opened the window, and Anna's cake was burnt.",
    "We saw mice in the kitchen on Friday.",
    "They burn cakes, trick or treat.",
    '"Why?" asked Tom.',
]
TRIPLES = {
    "oven": [("oven", "UsedFor", "cake"), ("oven", "AtLocation", "kitchen")],
    "cake": [("cake", "ReceivesAction", "burn")],
    "cakes": [("cake", "ReceivesAction", "burn")],
    "burnt": [("burn", "Causes", "smoke")],
    "burn": [("burn", "Causes", "smoke")],
}


def small_tokenizer() -> IncrementalEncoderTokenizer:
    vocabulary = build_vocabulary(SENTENCES)
    tokenizer = IncrementalEncoderTokenizer(vocab=vocabulary.ids)
    tokenizer.word_forms = vocabulary.word_forms
    tokenizer.knowledge = KnowledgeTable(
        relations=["AtLocation", "Causes", "ReceivesAction", "RelatedTo", "UsedFor"],
        max_triples=3,
        triples=TRIPLES,
        concepts={"cakes": ["cake"], "burnt": ["burn"]},
        phrases={"trick or treat": [("treat", "RelatedTo", "friday")]},
    )
    return tokenizer
