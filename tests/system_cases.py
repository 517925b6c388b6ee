"""The systems at a tiny size, and stories with words that the vocabulary lacks."""

from __future__ import annotations

import random

import torch
from reference_systems import CopyStory
from story_cases import END, NUM_WORDS, as_tensors, random_stories, tiny_model

from hf_storyend import IncrementalEncoderForEndingGeneration
from hf_storyend.systems import SYSTEMS

NUM_SLOTS, UNKNOWN = 4, 0
# Those that are not covered by the tests of incremental encoding alone.
NEW_SYSTEMS = [name for name in SYSTEMS if name not in ("ie", "ie-msa-ga", "ie-msa-ca")]
COPYING = [name for name, system in SYSTEMS.items() if system.copy]


def tiny_system(name: str, dtype: torch.dtype = torch.float64, **kwargs) -> IncrementalEncoderForEndingGeneration:
    return tiny_model(dtype, **{**SYSTEMS[name].settings, "num_copy_slots": NUM_SLOTS, **kwargs})


def copy_stories(seed: int, copies: bool, num_stories: int = 3, **sizes: int) -> list[CopyStory]:
    """Stories and, if `copies`, slots for some of their words and words of the story in their endings."""
    rng = random.Random(seed)
    return [
        _with_slots(rng, *story) if copies else (*story, story[0])
        for story in random_stories(seed, num_stories, **sizes)
    ]


def _with_slots(rng: random.Random, sentences, graphs, ending) -> CopyStory:
    slots = range(NUM_WORDS, NUM_WORDS + NUM_SLOTS)
    copied = [[rng.choice(slots) if rng.random() < 0.4 else word for word in sentence] for sentence in sentences]
    read = [[UNKNOWN if word in slots else word for word in sentence] for sentence in copied]
    places = [word for sentence in copied for word in sentence]
    ending = [rng.choice(places) if rng.random() < 0.6 else word for word in ending[:-1]] + [END]
    return read, graphs, ending, copied


def as_batch(stories: list[CopyStory], **padding: int) -> dict[str, torch.Tensor]:
    """The model's inputs, `copy_ids` among them."""
    batch = as_tensors([story[:3] for story in stories], **padding)
    batch["copy_ids"] = torch.full_like(batch["input_ids"], -100)
    for b, (*_, copied) in enumerate(stories):
        for i, words in enumerate(copied):
            batch["copy_ids"][b, i, : len(words)] = torch.tensor(words)
    return batch


def batch_for(name: str, seed: int, num_stories: int = 3, **sizes: int) -> dict[str, torch.Tensor]:
    return as_batch(copy_stories(seed, SYSTEMS[name].copy, num_stories, **sizes))
