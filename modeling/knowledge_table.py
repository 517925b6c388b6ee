# Copyright 2026 The hf_storyend authors.
# SPDX-License-Identifier: Apache-2.0
"""The knowledge that a tokenizer carries: for every word, the triples that it retrieves."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

Triple = tuple[str, str, str]

_FORMAT = 1
# Tensors have room for this many at every word: a corrupted file must not ask for all memory.
_MAX_TRIPLES = 1000
_MAX_FORMS = 16


class TripleLookup(NamedTuple):
    """
    The triples of all words as tensors, a row a word: the V words of the vocabulary by their ids, then the other
    words of the table (`KnowledgeTable.rows`). N triples, F forms of a tail.
    """

    triple_ids: torch.Tensor  # [rows, N, 3]: head word, relation, tail word
    triple_mask: torch.Tensor  # [rows, N]
    triple_weights: torch.Tensor  # [rows, N]
    tail_form_ids: torch.Tensor  # [rows, N, F]: word ids, padding elsewhere


class KnowledgeTable:
    """
    Words and their triples `(head, relation, tail)`, at most `max_triples` a word and one a tail, best first.

    A word retrieves the triples of its concept: `cooking` those of `cook`. Which concept that is was found out when
    the table was built and is kept in `concepts`, so that nothing has to be lemmatised when a story is read.

    Args:
        relations (`list[str]`): Relation names; the position in the list is the id.
        max_triples (`int`, *optional*, defaults to 10): Most triples a word can have.
        triples (`dict[str, list[tuple[str, str, str]]]`, *optional*):
            Triples of each word. Words and heads may be out of the vocabulary, tails may not.
        concepts (`dict[str, list[str]]`, *optional*): Concepts of words that are not their own: `{"mice": ["mouse"]}`.
        phrases (`dict[str, list[tuple[str, str, str]]]`, *optional*):
            Triples of concepts of several words, `{"trick or treat": [("treat", "RelatedTo", "halloween")]}`. Where
            the words stand in a row, they are put before the triples of the last one, which is also their head.
        statistics (`dict`, *optional*): What is known about how the table was built; kept as it is.
        weights (`dict[tuple[str, str, str], float]`, *optional*):
            How much likelier the tail is in the ending of a story with the head, the log of its lift; 0 where missing.
        forms (`dict[str, list[str]]`, *optional*):
            The words of the vocabulary that are forms of a tail: `{"burn": ["burn", "burned"]}`. Where missing, the
            tail itself.
    """

    def __init__(
        self,
        relations: Iterable[str] = (),
        max_triples: int = 10,
        triples: Mapping[str, Iterable[Triple]] | None = None,
        concepts: Mapping[str, Iterable[str]] | None = None,
        phrases: Mapping[str, Iterable[Triple]] | None = None,
        statistics: Mapping[str, Any] | None = None,
        weights: Mapping[Triple, float] | None = None,
        forms: Mapping[str, Sequence[str]] | None = None,
    ):
        self.relations = [relation_name(relation) for relation in relations]
        if len(set(self.relations)) != len(self.relations):
            raise ValueError("`relations` has a name twice.")
        is_number = isinstance(max_triples, int) and not isinstance(max_triples, bool)
        if not is_number or not 1 <= max_triples <= _MAX_TRIPLES:
            raise ValueError(
                f"`max_triples` must be a whole number of at least 1 and at most {_MAX_TRIPLES}; "
                f"got {max_triples!r:.60}."
            )
        self.max_triples = max_triples
        self.relation_ids = {relation: index for index, relation in enumerate(self.relations)}
        self.triples = _checked_graphs("triples", triples or {}, self.relation_ids, max_triples)
        self.phrases = _checked_graphs("phrases", phrases or {}, self.relation_ids, max_triples)
        self.concepts = {word: list(concepts_of) for word, concepts_of in (concepts or {}).items()}
        self.statistics = dict(statistics or {})
        self.weights = _checked_weights(weights or {})
        self.forms = _checked_forms(forms or {})
        # Of a triple that a user adds: as strong as the table's strongest.
        self.user_weight = max(self.weights.values(), default=1.0)

    def __len__(self) -> int:
        """Number of words that have a triple."""
        return len(self.triples)

    def of(self, word: str) -> list[Triple]:
        """The triples of a word, best first."""
        return list(self.triples.get(word, ()))

    def weight_of(self, triple: Triple) -> float:
        return self.weights.get(triple, 0.0)

    def forms_of(self, tail: str) -> list[str]:
        return self.forms.get(tail) or [tail]

    def graphs_with(self, triples: Iterable[Triple]) -> dict[str, list[Triple]]:
        """
        The graphs of the words concerned, as they would be with these triples added: the new ones first, in their
        order, each in place of an old one with the same tail; what is over the limit falls off the end.
        """
        by_head: dict[str, list[Triple]] = {}
        for head, relation, tail in triples:
            by_head.setdefault(head, []).append((head, relation_name(relation), tail))
        added = {head: list(rows) for head, rows in by_head.items()}
        for word, concepts in self.concepts.items():
            for concept in concepts:
                if concept != word and concept in by_head:
                    added.setdefault(word, []).extend(by_head[concept])
        return {word: unique_tails([*rows, *self.of(word)], self.max_triples) for word, rows in added.items()}

    def add(self, triples: Iterable[Triple]) -> None:
        """Add triples, with `user_weight`, to the graphs of their heads and of words whose concept the head is."""
        triples = [(head, relation_name(relation), tail) for head, relation, tail in triples]
        self.triples.update(self.graphs_with(triples))
        self.weights.update(dict.fromkeys(triples, self.user_weight))

    def problems_with(self, triples: Iterable[Triple], vocabulary: Mapping[str, int]) -> dict[int, str]:
        """Why triples can't be used, by position: not three strings, an unknown relation, or an unknown tail."""
        problems = {}
        for position, triple in enumerate(triples):
            if not _is_triple(triple):
                problems[position] = f"{triple!r} is not (head, relation, tail), three strings"
                continue
            _, relation, tail = triple
            if relation_name(relation) not in self.relation_ids:
                # Relations of encyclopaedias, `dbpedia/genre`, are none that anybody means.
                known = ", ".join(name for name in self.relations if "/" not in name)
                problems[position] = f"{triple!r}: relation {relation!r} is not one of {known}"
            elif tail not in vocabulary:
                problems[position] = f"{triple!r}: {tail!r} not in the vocabulary"
        return problems

    def ids(self, triples: Iterable[Triple], vocabulary: Mapping[str, int], unk_id: int = 0) -> list[list[int]]:
        """Triples as ids of head word (`unk_id` out of the vocabulary), relation and tail word."""
        return [
            [vocabulary.get(head, unk_id), self.relation_ids[relation], vocabulary[tail]]
            for head, relation, tail in triples
        ]

    def rows(self, vocabulary: Mapping[str, int]) -> dict[str, int]:
        """Rows of words in the look-up tensors: the ids of the vocabulary, then the table's other words in order."""
        first = 1 + max(vocabulary.values(), default=-1)
        others = sorted(word for word in self.triples if word not in vocabulary)
        return {**vocabulary, **{word: first + place for place, word in enumerate(others)}}

    def lookup(self, vocabulary: Mapping[str, int], unk_id: int = 0, pad_id: int = 0) -> TripleLookup:
        """The triples of all words, with room for as many as some word has (at least 1)."""
        rows = self.rows(vocabulary)
        num_rows = 1 + max(rows.values(), default=0)
        num_triples = max((len(graph) for graph in self.triples.values()), default=0) or 1
        num_forms = max((len(forms) for forms in self.forms.values()), default=0) or 1
        found = TripleLookup(
            torch.zeros(num_rows, num_triples, 3, dtype=torch.long),
            torch.zeros(num_rows, num_triples, dtype=torch.long),
            torch.zeros(num_rows, num_triples),
            torch.full((num_rows, num_triples, num_forms), pad_id, dtype=torch.long),
        )
        # All at once, and each distinct triple once: a tensor a word takes a second.
        triples = [triple for graph in self.triples.values() for triple in graph]
        if not triples:
            return found
        distinct = {triple: place for place, triple in enumerate(dict.fromkeys(triples))}
        tails = {tail: place for place, tail in enumerate(dict.fromkeys(tail for _, _, tail in distinct))}
        form_ids = [self.form_ids(tail, vocabulary) for tail in tails]
        forms = torch.tensor([ids + [pad_id] * (num_forms - len(ids)) for ids in form_ids])
        words = torch.tensor([rows[word] for word, graph in self.triples.items() for _ in graph])
        columns = torch.tensor([column for graph in self.triples.values() for column in range(len(graph))])
        places = torch.tensor([distinct[triple] for triple in triples])
        found.triple_ids[words, columns] = torch.tensor(self.ids(distinct, vocabulary, unk_id))[places]
        found.triple_mask[words, columns] = 1
        found.triple_weights[words, columns] = torch.tensor([self.weights.get(one, 0.0) for one in distinct])[places]
        found.tail_form_ids[words, columns] = forms[torch.tensor([tails[tail] for _, _, tail in distinct])[places]]
        return found

    def form_ids(self, tail: str, vocabulary: Mapping[str, int]) -> list[int]:
        return [vocabulary[form] for form in self.forms_of(tail)]

    def save(self, path: str | Path) -> None:
        """Write JSON: each distinct triple once, words and phrases as lists of positions."""
        positions: dict[Triple, int] = {}

        def as_positions(graphs: dict[str, list[Triple]]) -> dict[str, list[int]]:
            return {
                words: [positions.setdefault(triple, len(positions)) for triple in rows]
                for words, rows in sorted(graphs.items())
            }

        content = {
            "format": _FORMAT,
            "max_triples": self.max_triples,
            "relations": self.relations,
            "statistics": self.statistics,
            "words": as_positions(self.triples),
            "phrases": as_positions(self.phrases),
            "triples": [list(triple) for triple in positions],
            "weights": [round(self.weight_of(triple), 3) for triple in positions] if self.weights else [],
            "forms": dict(sorted(self.forms.items())),
            "concepts": dict(sorted(self.concepts.items())),
        }
        Path(path).write_text(json.dumps(content, ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> KnowledgeTable:
        """Read what `save` wrote; a file of another shape is refused with the reason."""
        try:
            return cls._from_content(json.loads(Path(path).read_text(encoding="utf-8")))
        except KeyError as error:
            raise ValueError(f"{path} is not a knowledge table: `{error.args[0]}` is missing.") from error
        except (AttributeError, RecursionError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is not a knowledge table: {error}") from error

    @classmethod
    def _from_content(cls, content: Any) -> KnowledgeTable:
        if content["format"] != _FORMAT:
            raise ValueError(f"its `format` is {content['format']!r}, this version reads {_FORMAT}.")
        for name in ("relations", "triples"):
            if not isinstance(content[name], list):
                raise ValueError(f"`{name}` must be a list; got {content[name]!r:.60}.")
        for word, concepts in content["concepts"].items():
            if not isinstance(concepts, list) or not all(isinstance(concept, str) for concept in concepts):
                raise ValueError(f"`concepts[{word!r}]` must be a list of words; got {concepts!r:.60}.")
        triples = [tuple(triple) for triple in content["triples"]]

        def as_triples(name: str) -> dict[str, list[Triple]]:
            for words, rows in content[name].items():
                if not isinstance(rows, list) or not _are_positions(rows, len(triples)):
                    raise ValueError(
                        f"`{name}[{words!r}]` must be a list of positions in `triples`; got {rows!r:.60}."
                    )
            return {words: [triples[row] for row in rows] for words, rows in content[name].items()}

        # Tables of version 0.1 have neither weights nor forms.
        weights = content.get("weights") or [0.0] * len(triples)
        if not isinstance(weights, list) or len(weights) != len(triples):
            raise ValueError(f"`weights` must be a list of {len(triples)} numbers, one a triple; got {weights!r:.60}.")
        return cls(
            relations=content["relations"],
            max_triples=content["max_triples"],
            triples=as_triples("words"),
            concepts=content["concepts"],
            phrases=as_triples("phrases"),
            statistics=content["statistics"],
            weights=dict(zip(triples, weights, strict=True)) if content.get("weights") else None,
            forms=content.get("forms"),
        )


def relation_name(relation: str) -> str:
    """`/r/UsedFor`, as ConceptNet writes it, and `UsedFor` are one."""
    return relation.removeprefix("/r/")


def unique_tails(triples: Iterable[Any], max_triples: int) -> list:
    """The first triple of each tail, in order, as many as allowed; of strings or of ids."""
    by_tail: dict[Any, Any] = {}
    for triple in triples:
        by_tail.setdefault(triple[2], triple)
    return list(by_tail.values())[:max_triples]


def _checked_graphs(
    name: str, graphs: Mapping[str, Iterable[Triple]], relation_ids: Mapping[str, int], max_triples: int
) -> dict[str, list[Triple]]:
    checked: dict[str, list[Triple]] = {}
    # The same triple stands in the graphs of several words: it is looked at once.
    known: set[int] = set()
    for words, triples in graphs.items():
        rows: list[Any] = list(map(tuple, triples))
        if len(rows) > max_triples:
            raise ValueError(f"`{name}[{words!r}]` has {len(rows)} triples; `max_triples` is {max_triples}.")
        new = () if known.issuperset(map(id, rows)) else rows
        for row in new:
            if not _is_triple(row) or row[1] not in relation_ids:
                raise ValueError(f"`{name}[{words!r}]` has {row!r}, not (head, known relation, tail).")
            known.add(id(row))
        checked[words] = rows
    return checked


def _checked_weights(weights: Mapping[Triple, float]) -> dict[Triple, float]:
    if set(map(type, weights.values())) == {float} and all(map(math.isfinite, weights.values())):
        return dict(weights)
    for triple, weight in weights.items():
        is_number = isinstance(weight, (int, float)) and not isinstance(weight, bool)
        if not is_number or not math.isfinite(weight):
            raise ValueError(f"`weights[{triple!r}]` must be a finite number; got {weight!r:.60}.")
    return dict(weights)


def _checked_forms(forms: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    for tail, words in forms.items():
        is_list = isinstance(words, (list, tuple)) and all(isinstance(word, str) for word in words)
        if not is_list or not 1 <= len(words) <= _MAX_FORMS:
            raise ValueError(f"`forms[{tail!r}]` must be a list of 1 to {_MAX_FORMS} words; got {words!r:.60}.")
    return {tail: list(words) for tail, words in forms.items()}


def _is_triple(value: Any) -> bool:
    if not isinstance(value, (tuple, list)) or len(value) != 3:
        return False
    head, relation, tail = value
    return isinstance(head, str) and isinstance(relation, str) and isinstance(tail, str)


def _are_positions(values: list[Any], length: int) -> bool:
    # By type: True is no position.
    return set(map(type, values)) <= {int} and all(0 <= value < length for value in values)
