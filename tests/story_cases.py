"""Random stories and tiny models of all systems: ragged lists for the reference, padded tensors for the model."""

from __future__ import annotations

import random

import torch
from reference import CopyStory, Story

from hf_storyend import IncrementalEncoderConfig, IncrementalEncoderForEndingGeneration
from hf_storyend.systems import SYSTEMS

KNOWLEDGE = ["graph_attention", "contextual_attention", None]
NUM_WORDS, NUM_RELATIONS, NUM_SLOTS = 23, 4, 4
UNKNOWN, PADDING, START, END = range(4)
INCREMENTAL = [name for name, system in SYSTEMS.items() if system.story_encoder == "incremental"]
KNOWING = [name for name, system in SYSTEMS.items() if system.knowledge]
TAIL_POINTING = [name for name, system in SYSTEMS.items() if system.tail_pointer]
COPYING = [name for name, system in SYSTEMS.items() if system.copy]


def tiny_config(**kwargs) -> IncrementalEncoderConfig:
    sizes = {"vocab_size": NUM_WORDS, "num_relations": NUM_RELATIONS, "embedding_size": 5, "hidden_size": 7}
    return IncrementalEncoderConfig(**{**sizes, **kwargs})


def tiny_model(dtype: torch.dtype = torch.float64, seed: int = 0, **kwargs) -> IncrementalEncoderForEndingGeneration:
    torch.manual_seed(seed)
    model = IncrementalEncoderForEndingGeneration(tiny_config(**kwargs))
    return model.to(dtype).eval()


def tiny_system(name: str, dtype: torch.dtype = torch.float64, **kwargs) -> IncrementalEncoderForEndingGeneration:
    return tiny_model(dtype, **{**SYSTEMS[name].settings, "num_copy_slots": NUM_SLOTS, **kwargs})


def random_story(rng: random.Random, max_sentences=4, max_words=5, max_triples=3, max_ending=4) -> Story:
    def word() -> int:
        return rng.randrange(4, NUM_WORDS)

    def graph() -> list[tuple[int, int, int]]:
        return [(word(), rng.randrange(NUM_RELATIONS), word()) for _ in range(rng.randint(0, max_triples))]

    sentences = [[word() for _ in range(rng.randint(1, max_words))] for _ in range(rng.randint(1, max_sentences))]
    graphs = [[graph() for _ in sentence] for sentence in sentences]
    return sentences, graphs, [*(word() for _ in range(rng.randint(0, max_ending))), END]


def random_stories(seed: int, num_stories: int = 3, **sizes: int) -> list[Story]:
    rng = random.Random(seed)
    return [random_story(rng, **sizes) for _ in range(num_stories)]


def stories_for(name: str, seed: int, num_stories: int = 3, **sizes: int) -> list[CopyStory]:
    """Stories for a system: if it copies, with slots for some of their words and words of the story in endings."""
    rng = random.Random(seed)
    return [
        _with_slots(rng, *story) if SYSTEMS[name].copy else (*story, story[0])
        for story in random_stories(seed, num_stories, **sizes)
    ]


def _with_slots(rng: random.Random, sentences, graphs, ending) -> CopyStory:
    slots = range(NUM_WORDS, NUM_WORDS + NUM_SLOTS)
    copied = [[rng.choice(slots) if rng.random() < 0.4 else word for word in sentence] for sentence in sentences]
    read = [[UNKNOWN if word in slots else word for word in sentence] for sentence in copied]
    positions = [word for sentence in copied for word in sentence]
    ending = [rng.choice(positions) if rng.random() < 0.6 else word for word in ending[:-1]] + [END]
    return read, graphs, ending, copied


def as_tensors(
    stories: list[Story] | list[CopyStory], extra_sentences=0, extra_words=0, extra_triples=0
) -> dict[str, torch.Tensor]:
    """The model's inputs, with `copy_ids` if the stories have any; the `extra_*` are padding that changes nothing."""
    num_sentences = max(len(story[0]) for story in stories) + extra_sentences
    num_words = max(len(sentence) for story in stories for sentence in story[0]) + extra_words
    graphs = [graph for story in stories for sentence in story[1] for graph in sentence]
    num_triples = max(1, *map(len, graphs)) + extra_triples
    shape = (len(stories), num_sentences, num_words)
    batch = {
        "input_ids": torch.full(shape, -100),
        "attention_mask": torch.zeros(shape, dtype=torch.long),
        "triple_ids": torch.full((*shape, num_triples, 3), -1),
        "triple_mask": torch.zeros((*shape, num_triples), dtype=torch.long),
        "triple_weights": torch.full((*shape, num_triples), torch.nan),
        "tail_form_ids": torch.full((*shape, num_triples, 2), PADDING),
        "labels": torch.full((len(stories), max(len(story[2]) for story in stories)), -100),
    }
    if len(stories[0]) == 4:
        batch["copy_ids"] = torch.full(shape, -100)
    for b, (sentences, story_graphs, ending, *copied) in enumerate(stories):
        batch["labels"][b, : len(ending)] = torch.tensor(ending)
        for i, sentence in enumerate(sentences):
            batch["input_ids"][b, i, : len(sentence)] = torch.tensor(sentence)
            batch["attention_mask"][b, i, : len(sentence)] = 1
            if copied:
                batch["copy_ids"][b, i, : len(sentence)] = torch.tensor(copied[0][i])
            for j, graph in enumerate(story_graphs[i]):
                for n, triple in enumerate(graph):
                    batch["triple_ids"][b, i, j, n] = torch.tensor(triple)
                    batch["triple_mask"][b, i, j, n] = 1
                    batch["triple_weights"][b, i, j, n] = triple_weight(triple)
                    forms = tail_forms(triple[2])
                    batch["tail_form_ids"][b, i, j, n, : len(forms)] = torch.tensor(forms)
    return batch


def triple_weight(triple: tuple[int, int, int]) -> float:
    """A weight for every triple, some of them negative."""
    head, relation, tail = triple
    return ((7 * head + 3 * relation + tail) % 9 - 3) / 4


def tail_forms(tail: int) -> list[int]:
    """The words that a triple with this tail offers: itself and, for every other one, a second."""
    return [tail] if tail % 2 else [tail, 4 + (5 * tail + 1) % (NUM_WORDS - 4)]


def batch_for(name: str, seed: int, num_stories: int = 3, **sizes: int) -> dict[str, torch.Tensor]:
    return as_tensors(stories_for(name, seed, num_stories, **sizes))


def context_of(batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: tensor for name, tensor in batch.items() if name != "labels"}
