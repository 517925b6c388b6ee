"""From edges between phrases to pairs of content lemmas, each with its most telling relation."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from .edges import Edge
from .relations import inverse_relation, is_external, telling_order
from .vocabulary_lemmas import VocabularyLemmas

# Longer phrases are sentences: their words say little about each other.
MAX_PHRASE_LEMMAS = 3
# A head, a tail and a relation as one number of 63 bits: 23 for the head, 24 for the tail, 16 for the relation.
_HEAD_SHIFT, _TAIL_SHIFT = 40, 16
_TAIL_MASK, _RELATION_MASK = (1 << 24) - 1, (1 << 16) - 1


@dataclass
class LemmaPairs:
    """Distinct pairs of lemmas, sorted by head and tail: `heads`, `tails` and `relations` (positions in `names`)."""

    heads: np.ndarray
    tails: np.ndarray
    relations: np.ndarray
    names: list[str]

    def __len__(self) -> int:
        return len(self.heads)


def lemma_pairs(edges: Iterable[Edge], lemmas: VocabularyLemmas, relations: Iterable[str] | None = None) -> LemmaPairs:
    """
    Return all pairs of a lemma at one end of an edge and a lemma of the vocabulary at its other end.

    Both directions count; the inverse of a relation has a name of its own. Edges with a phrase of more than
    `MAX_PHRASE_LEMMAS` content lemmas are dropped, and so are those of external relations.

    Args:
        edges: As from `read_edges`; read once.
        lemmas: Lemmas of the vocabulary. Heads that it lacks are added.
        relations: Relations to keep, without their inverses; by default all.
    """
    kept = None if relations is None else frozenset(relations)
    content = lru_cache(maxsize=1 << 16)(lambda phrase: _content_lemmas(phrase, lemmas))
    codes: dict[str, int] = {}
    # One number a pair and relation: memory is eight bytes each.
    found = array("q")
    for edge in edges:
        if is_external(edge.relation) or (kept is not None and edge.relation not in kept):
            continue
        heads, tails = content(edge.head), content(edge.tail)
        if not heads or not tails:
            continue
        for sources, targets, relation in (
            (heads, tails, edge.relation),
            (tails, heads, inverse_relation(edge.relation)),
        ):
            code = codes.setdefault(relation, len(codes))
            for target in targets:
                tail = lemmas.ids.get(target)
                if tail is None or not lemmas.is_tail(tail):
                    continue
                for source in sources:
                    if source != target and lemmas.is_possible_head(source):
                        found.append(lemmas.add(source) << _HEAD_SHIFT | tail << _TAIL_SHIFT | code)
    return _distinct_pairs(np.frombuffer(found, dtype=np.int64), list(codes))


def _content_lemmas(phrase: str, lemmas: VocabularyLemmas) -> tuple[str, ...]:
    """Return the distinct content lemmas of a phrase, none if there are too many."""
    found = (lemmas.lemma(word) for word in phrase.split("_"))
    distinct = tuple(dict.fromkeys(lemma for lemma in found if lemma is not None))
    return distinct if len(distinct) <= MAX_PHRASE_LEMMAS else ()


def _distinct_pairs(found: np.ndarray, codes: list[str]) -> LemmaPairs:
    names = sorted(codes, key=telling_order)
    places = np.array([names.index(name) for name in codes], dtype=np.int64)
    pairs, relations = found >> _TAIL_SHIFT, places[found & _RELATION_MASK] if len(found) else found
    # Sorted by pair, then by relation: the first of a pair is its most telling.
    order = np.lexsort((relations, pairs))
    keys, first = np.unique(pairs[order], return_index=True)
    return LemmaPairs(keys >> (_HEAD_SHIFT - _TAIL_SHIFT), keys & _TAIL_MASK, relations[order][first], names)
