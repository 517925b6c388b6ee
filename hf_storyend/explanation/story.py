"""Stories as tensors, and back: which word of the story or the ending stands at which place, with which triples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ..modeling import IncrementalEncoderForEndingGeneration, IncrementalEncoderTokenizer
from ..modeling.evidence import triple_names, written_words
from ..modeling.knowledge_table import Triple, relation_name
from ..story_text import split_story


@dataclass(frozen=True)
class TokenizedStory:
    """
    One story of K sentences with at most L words each.

    Args:
        sentences: The sentences as text.
        words: The words of each sentence, as written.
        tensors: The model's inputs: a batch of one.
    """

    sentences: list[str]
    words: list[list[str]]
    tensors: dict[str, torch.Tensor]

    @property
    def copy_ids(self) -> torch.Tensor:
        """[K, L]: ids under which words can be copied; out-of-vocabulary words have ids beyond the vocabulary."""
        return self.tensors.get("copy_ids", self.tensors["input_ids"])[0]

    def first_position(self, word_id: int) -> tuple[int, int] | None:
        """Return sentence and position, from 0, of the first word with this copy id; None if there is none."""
        found = ((self.copy_ids == word_id) & (self.tensors["attention_mask"][0] == 1)).nonzero().tolist()
        return tuple(found[0]) if found else None


def tokenize_story(
    model: IncrementalEncoderForEndingGeneration,
    tokenizer: IncrementalEncoderTokenizer,
    story: str | Sequence[str],
    triples: Sequence[Triple] | None = None,
) -> TokenizedStory:
    """Tokenize a story, with triples for it alone if given, on the device of the model."""
    if triples and not reads_triples(model):
        raise ValueError("`triples` were given, but this model reads no knowledge: it was trained without triples.")
    sentences = split_story(story)
    if not sentences:
        raise ValueError(f"`story` has no sentence: {story!r}.")
    batch = tokenizer([sentences], triples=triples, return_tensors="pt")
    tensors = {name: tensor.to(model.device) for name, tensor in batch.items()}
    return TokenizedStory(sentences, written_words(tokenizer, sentences), tensors)


def reads_triples(model: IncrementalEncoderForEndingGeneration) -> bool:
    """Whether a model reads triples: by knowledge attention, or by a tail pointer."""
    return model.config.knowledge is not None or model.config.tail_pointer


def name_triples(tokenizer: IncrementalEncoderTokenizer, story: TokenizedStory) -> dict[tuple[int, int, int], Triple]:
    """Return the triples of a story by their places: sentence, word and triple, counted from 0."""
    ids, mask = (story.tensors[name][0].cpu() for name in ("triple_ids", "triple_mask"))
    return triple_names(tokenizer, story.words, ids, mask)


def find_triples(
    tokenizer: IncrementalEncoderTokenizer, story: TokenizedStory, name: str, triples: Sequence[Triple]
) -> torch.Tensor:
    """
    Find triples in the graphs of a story's words.

    Args:
        tokenizer: The model's tokenizer.
        story: The story.
        name: What the error calls `triples`.
        triples: Triples to find; one that no word has is an error.

    Returns:
        Mask [1, K, L, N] of their places.
    """
    names = name_triples(tokenizer, story)
    found = torch.zeros_like(story.tensors["triple_mask"], dtype=torch.bool)
    for triple in triples:
        wanted = _normalize_triple(tokenizer, name, triple)
        places = [place for place, named in names.items() if named == wanted]
        if not places:
            raise ValueError(
                f"`{name}`: no word of the story has the triple {tuple(triple)}. "
                f"Triples of the story: {_format_triples(list(dict.fromkeys(names.values())))}."
            )
        for place in places:
            found[0][place] = True
    return found


def _normalize_triple(tokenizer: IncrementalEncoderTokenizer, name: str, triple: Any) -> Triple:
    """Return a triple in the spelling of the table."""
    if isinstance(triple, str) or len(triple) != 3 or not all(isinstance(part, str) for part in triple):
        raise ValueError(f"`{name}` has {triple!r}, not (head, relation, tail), three strings.")
    head, tail = (part.lower() if tokenizer.do_lower_case else part for part in (triple[0], triple[2]))
    return head, relation_name(triple[1]), tail


def _format_triples(triples: Sequence[Triple], max_triples: int = 10) -> str:
    """List triples, the first few of many."""
    shown = [f"({', '.join(triple)})" for triple in triples[:max_triples]]
    if not shown:
        return "none"
    return ", ".join(shown) + (f" and {len(triples) - max_triples} more" if len(triples) > max_triples else "")
