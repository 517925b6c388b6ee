"""Random stories for tests: ragged lists for the reference, the same as padded tensors for the model."""

from __future__ import annotations

import random

import torch
from reference import Story

from hf_storyend import IncrementalEncoderConfig, IncrementalEncoderForEndingGeneration

KNOWLEDGE = ["graph_attention", "contextual_attention", None]
NUM_WORDS, NUM_RELATIONS, PADDING, START, END = 23, 4, 1, 2, 3


def tiny_config(**kwargs) -> IncrementalEncoderConfig:
    sizes = {"vocab_size": NUM_WORDS, "num_relations": NUM_RELATIONS, "embedding_size": 5, "hidden_size": 7}
    return IncrementalEncoderConfig(**{**sizes, **kwargs})


def tiny_model(dtype: torch.dtype = torch.float64, seed: int = 0, **kwargs) -> IncrementalEncoderForEndingGeneration:
    torch.manual_seed(seed)
    model = IncrementalEncoderForEndingGeneration(tiny_config(**kwargs))
    return model.to(dtype).eval()


def random_story(rng: random.Random, max_sentences=4, max_words=5, max_triples=3, max_ending=4) -> Story:
    def word() -> int:
        return rng.randrange(4, NUM_WORDS)

    def graph() -> list[tuple[int, int, int]]:
        return [(word(), rng.randrange(NUM_RELATIONS), word()) for _ in range(rng.randint(0, max_triples))]

    sentences = [[word() for _ in range(rng.randint(1, max_words))] for _ in range(rng.randint(1, max_sentences))]
    graphs = [[graph() for _ in sentence] for sentence in sentences]
    return sentences, graphs, [*(word() for _ in range(rng.randint(0, max_ending))), END]


def random_stories(seed: int, num_stories: int = 3, **kwargs) -> list[Story]:
    rng = random.Random(seed)
    return [random_story(rng, **kwargs) for _ in range(num_stories)]


def as_tensors(stories: list[Story], extra_sentences=0, extra_words=0, extra_triples=0) -> dict[str, torch.Tensor]:
    """The model's inputs; the `extra_*` are padding that must not change anything."""
    num_sentences = max(len(sentences) for sentences, _, _ in stories) + extra_sentences
    num_words = max(len(sentence) for sentences, _, _ in stories for sentence in sentences) + extra_words
    graphs = [graph for _, story, _ in stories for sentence in story for graph in sentence]
    num_triples = max(1, *map(len, graphs)) + extra_triples
    shape = (len(stories), num_sentences, num_words)
    batch = {
        "input_ids": torch.full(shape, -100),
        "attention_mask": torch.zeros(shape, dtype=torch.long),
        "triple_ids": torch.full((*shape, num_triples, 3), -1),
        "triple_mask": torch.zeros((*shape, num_triples), dtype=torch.long),
        "labels": torch.full((len(stories), max(len(ending) for *_, ending in stories)), -100),
    }
    for b, (sentences, story_graphs, ending) in enumerate(stories):
        batch["labels"][b, : len(ending)] = torch.tensor(ending)
        for i, sentence in enumerate(sentences):
            batch["input_ids"][b, i, : len(sentence)] = torch.tensor(sentence)
            batch["attention_mask"][b, i, : len(sentence)] = 1
            for j, graph in enumerate(story_graphs[i]):
                for n, triple in enumerate(graph):
                    batch["triple_ids"][b, i, j, n] = torch.tensor(triple)
                    batch["triple_mask"][b, i, j, n] = 1
    return batch


def context_of(batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: tensor for name, tensor in batch.items() if name != "labels"}
