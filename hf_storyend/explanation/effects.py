"""Effects: how much less likely an ending is without a triple, without all of them, or without a sentence."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ..modeling import IncrementalEncoderForEndingGeneration, IncrementalEncoderTokenizer
from ..modeling.evidence import removal_effects
from ..modeling.knowledge_table import Triple
from .inference import eval_mode
from .result import Effect, Effects, SentenceEffect, TripleEffect
from .story import TokenizedStory, find_triples, name_triples, reads_triples, tokenize_story


def effects(
    model: IncrementalEncoderForEndingGeneration,
    tokenizer: IncrementalEncoderTokenizer,
    story: str | Sequence[str],
    ending: str,
    *,
    without_triples: Sequence[Triple] | None = None,
    triples: Sequence[Triple] | None = None,
) -> Effects:
    """
    Measure how much less likely an ending is without each sentence of its story, without triples, one at a time, and
    without all triples.

    Args:
        model: A model of any system.
        tokenizer: Its tokenizer.
        story: One string, or the sentences of one story.
        ending: Any ending, generated or not.
        without_triples: Triples to remove; default: all triples of the story.
        triples: Knowledge for this story only, as in `explain`.
    """
    if without_triples and not reads_triples(model):
        raise ValueError("`without_triples` were given, but this model reads no knowledge.")
    tokenized = tokenize_story(model, tokenizer, story, triples)
    labels = tokenizer([tokenized.sentences], text_target=[ending], return_tensors="pt")["labels"]
    return measure_effects(model, tokenizer, tokenized, labels[0].tolist(), without_triples)


def measure_effects(
    model: IncrementalEncoderForEndingGeneration,
    tokenizer: IncrementalEncoderTokenizer,
    story: TokenizedStory,
    ending_ids: Sequence[int],
    without_triples: Sequence[Triple] | None = None,
) -> Effects:
    """Measure effects on an ending, given by its ids; `without_triples` are all triples of the story by default."""
    known = _places_of_triples(tokenizer, story) if reads_triples(model) else {}
    removed = list(known) if without_triples is None else list(without_triples)
    if without_triples is None:
        masks = list(known.values())
    else:
        masks = [find_triples(tokenizer, story, "without_triples", [triple])[0] for triple in removed]
    masks += [torch.ones_like(story.tensors["triple_mask"][0], dtype=torch.bool)] if known else []
    # Nothing would be left of a single sentence.
    numbers = range(len(story.sentences)) if len(story.sentences) > 1 else range(0)
    with eval_mode(model):
        of_triples, of_sentences = removal_effects(model, story.tensors, ending_ids, masks, numbers)
    return Effects(
        triples=[
            TripleEffect(**effect, head=head, relation=relation, tail=tail)
            for effect, (head, relation, tail) in zip(of_triples, removed, strict=False)
        ],
        sentences=[
            SentenceEffect(**effect, sentence=number + 1) for effect, number in zip(of_sentences, numbers, strict=True)
        ],
        knowledge=Effect(**of_triples[-1]) if known else None,
    )


def _places_of_triples(tokenizer: IncrementalEncoderTokenizer, story: TokenizedStory) -> dict[Triple, torch.Tensor]:
    """Return a mask [K, L, N] for each triple of a story."""
    found: dict[Triple, torch.Tensor] = {}
    for place, triple in name_triples(tokenizer, story).items():
        nowhere = torch.zeros_like(story.tensors["triple_mask"][0], dtype=torch.bool)
        found.setdefault(triple, nowhere)[place] = True
    return found
