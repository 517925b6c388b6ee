"""Which words of a story have a triple."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ..modeling import IncrementalEncoderTokenizer
from ..modeling.knowledge_table import Triple, relation_name
from .story_tensors import StoryTensors


def find_triples(
    tokenizer: IncrementalEncoderTokenizer, story: StoryTensors, name: str, triples: Sequence[Triple]
) -> torch.Tensor:
    """Where [1, K, L, N] the words of a story have these triples; one that none has is an error."""
    ids, mask = story.tensors["triple_ids"], story.tensors["triple_mask"] == 1
    found = torch.zeros_like(mask)
    for triple in triples:
        wanted = _triple_ids(tokenizer, name, triple)
        here = torch.zeros_like(mask) if wanted is None else (ids == ids.new_tensor(wanted)).all(dim=-1) & mask
        if not here.any():
            raise ValueError(
                f"`{name}`: no word of the story reads {tuple(triple)}. It reads {_listed(tokenizer, ids[mask])}."
            )
        found |= here
    return found


def _triple_ids(tokenizer: IncrementalEncoderTokenizer, name: str, triple: Any) -> list[int] | None:
    """Ids of a triple, or None if it has a word or relation that no triple of the model can have."""
    if isinstance(triple, str) or len(triple) != 3 or not all(isinstance(part, str) for part in triple):
        raise ValueError(f"`{name}` has {triple!r}, not (head, relation, tail), three strings.")
    words = [part.lower() if tokenizer.do_lower_case else part for part in (triple[0], triple[2])]
    vocabulary, relation = tokenizer.get_vocab(), relation_name(triple[1])
    if relation not in tokenizer.knowledge.relation_ids or not all(word in vocabulary for word in words):
        return None
    return [vocabulary[words[0]], tokenizer.knowledge.relation_ids[relation], vocabulary[words[1]]]


def _listed(tokenizer: IncrementalEncoderTokenizer, ids: torch.Tensor, max_triples: int = 10) -> str:
    """The triples of [R, 3], each once, as a list of a readable length."""
    distinct = list(dict.fromkeys(map(tuple, ids.tolist())))
    shown = []
    for head, relation, tail in distinct[:max_triples]:
        words = tokenizer.convert_ids_to_tokens([head, tail])
        shown.append(f"({words[0]}, {tokenizer.knowledge.relations[relation]}, {words[1]})")
    if not shown:
        return "none at all"
    return ", ".join(shown) + (f" and {len(distinct) - max_triples} more" if len(distinct) > max_triples else "")
