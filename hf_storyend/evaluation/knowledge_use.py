"""How much of an ending is something that the knowledge of the context speaks of."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from ..modeling import IncrementalEncoderTokenizer
from .ratios import Ratio
from .texts import is_word

_CHUNK = 256


class KnowledgeUse:
    """
    Compares endings with the triples of the words of their contexts. Triples are about lemmas: a word counts where it,
    or what it is a form of, is the tail of one.
    """

    def __init__(self, tokenizer: IncrementalEncoderTokenizer, contexts: Sequence[Sequence[str]]):
        self._tokenizer = tokenizer
        self._contexts = contexts
        self._forms: dict[str, frozenset[int]] = {}

    def ratios(self, endings: Sequence[str]) -> dict[str, Ratio]:
        """
        Share of the endings' words (marks not counted) that are a tail of a triple of a word of the context, and the
        same among the words that the knowledge knows at all, its nouns and verbs. Nothing if there is no knowledge.
        """
        if not self._known:
            return {}
        counts = [self._count(ending, tails) for ending, tails in zip(endings, self._tails, strict=True)]
        num_used, num_words, num_known = np.array(counts, dtype=np.float64).T
        return {
            "knowledge_use": Ratio(num_used, num_words, scale=100),
            "knowledge_use_content": Ratio(num_used, num_known, scale=100),
        }

    def _count(self, ending: str, tails: set[int]) -> tuple[int, int, int]:
        words = [self._ids_of(word) for word in self._tokenizer.tokenize(ending) if is_word(word)]
        num_used = sum(not tails.isdisjoint(ids) for ids in words)
        return num_used, len(words), sum(not self._known.isdisjoint(ids) for ids in words)

    def _ids_of(self, word: str) -> frozenset[int]:
        """Ids of a word and of the lemmas that it may be a form of."""
        if word not in self._forms:
            words = [word, *self._tokenizer.knowledge.concepts.get(word, ())]
            self._forms[word] = frozenset(self._tokenizer.convert_tokens_to_ids(words))
        return self._forms[word]

    @cached_property
    def _known(self) -> set[int]:
        table = self._tokenizer.knowledge
        graphs = [*table.triples.values(), *table.phrases.values()]
        words = {word for triples in graphs for head, _, tail in triples for word in (head, tail)}
        return set(self._tokenizer.convert_tokens_to_ids(sorted(words)))

    @cached_property
    def _tails(self) -> list[set[int]]:
        tails: list[set[int]] = []
        for start in range(0, len(self._contexts), _CHUNK):
            contexts = [list(context) for context in self._contexts[start : start + _CHUNK]]
            batch = self._tokenizer(contexts, return_tensors="pt")
            for triples, mask in zip(batch["triple_ids"], batch["triple_mask"], strict=True):
                tails.append(set(triples[..., 2][mask == 1].tolist()))
        return tails
