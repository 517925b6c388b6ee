"""`build_story_lift_table`: the triples whose tails the training stories show to belong in the endings."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..modeling.knowledge_table import KnowledgeTable, Triple
from .edges import Edge, ReadReport, relation_names
from .lemma_pairs import LemmaPairs, lemma_pairs
from .lexicon import inflections, is_own_lemma
from .lift import Neighbours, PairLift
from .selection import DEFAULT_MIN_LIFT, STORY_LIFT
from .statistics import table_statistics
from .story_counts import StoryCounts, StoryWords
from .vocabulary_lemmas import VocabularyLemmas

# Heads that no story has: what is known of them comes from their neighbours and relations only.
MAX_UNSEEN_TRIPLES = 3
UNSEEN_LIFT_RATIO = 2.0
_MAX_FORMS = 12

# Vectors of some words, [words, E], zero for those without one.
VectorsOf = Callable[[Sequence[str]], np.ndarray]


@dataclass(frozen=True)
class HeldOutWeights:
    """
    Weights of triples counted without a story whose ending has the tail, as flat arrays in order of stories.

    Args:
        stories: Positions of stories.
        words: Ids of words of their contexts, which are also rows of the table.
        tails: Ids of the tails.
        weights: Log of the lift; NaN if it no longer reaches the minimum.
    """

    stories: np.ndarray
    words: np.ndarray
    tails: np.ndarray
    weights: np.ndarray


def build_story_lift_table(
    edges: Iterable[Edge],
    vocabulary: Mapping[str, int],
    stories: StoryWords,
    *,
    names: Collection[str] = (),
    vectors_of: VectorsOf | None = None,
    counts: Mapping[str, int] | None = None,
    relations: Iterable[str] | None = None,
    max_triples: int = 10,
    min_lift: float = DEFAULT_MIN_LIFT,
    report: ReadReport | None = None,
) -> tuple[KnowledgeTable, HeldOutWeights]:
    """
    Build the knowledge table of a vocabulary from edges and training stories.

    A triple connects two content lemmas that stand at the ends of an edge, in either direction. It is kept if the
    tail is `min_lift` times likelier in the ending of a story whose context has the head (see
    `hf_storyend.knowledge.lift`); a head has the `max_triples` with the largest probability times log lift, which is
    also their weight. All forms of a head retrieve its triples, those that the vocabulary lacks included.

    Args:
        edges (`Iterable[Edge]`): As from `read_edges`; read once.
        vocabulary (`Mapping[str, int]`): Word ids by descending frequency. Special tokens, in `<...>`, are skipped.
        stories (`StoryWords`): Training stories.
        names (`Collection[str]`, *optional*): Words that are names of persons, in lower case; they have no triples.
        vectors_of (`Callable`, *optional*):
            Word vectors: gets words and returns their vectors, [words, E], zero for words without one.
        counts (`Mapping[str, int]`, *optional*): Frequencies of words, for the statistics only.
        relations (`Iterable[str]`, *optional*): Relations to keep; their inverses follow them. By default all.
        max_triples (`int`, *optional*, defaults to 10): Maximum number of triples per word.
        min_lift (`float`, *optional*, defaults to 1.5): Minimum lift of a triple.
        report (`ReadReport`, *optional*): Report of `read_edges`, to be included in the statistics.

    Returns:
        The table, and the weights of its triples for the stories themselves.
    """
    # Bad arguments are refused before edges are read, which can take minutes.
    KnowledgeTable(max_triples=max_triples)
    lemmas = VocabularyLemmas(vocabulary, names)
    pairs = lemma_pairs(edges, lemmas, relation_names(relations))
    if not len(pairs):
        raise ValueError(
            "No edge has a content word of the vocabulary at its end, so there is nothing to retrieve. "
            "Check the vocabulary's language, `relations`, and what was read."
        )
    story_counts = StoryCounts(stories, lemmas.of_word, len(lemmas.names))
    neighbours = None if vectors_of is None else Neighbours.nearest(vectors_of(lemmas.names), story_counts.contexts)
    lift = PairLift(pairs, story_counts, neighbours)
    selected = _select(pairs, lift, story_counts.contexts, max_triples, min_lift)
    if not len(selected):
        raise ValueError(f"No triple reaches `min_lift`, {min_lift}: choose a smaller one, or give more edges.")
    triples = _Triples(lemmas, vocabulary, pairs, lift)
    table = triples.table(selected, max_triples)
    table.statistics.update(
        policy=STORY_LIFT,
        max_triples=max_triples,
        min_lift=min_lift,
        inverse=True,
        symmetric=True,
        multi_word=False,
        **triples.statistics(table, counts),
        **({"reading": asdict(report)} if report is not None else {}),
    )
    return table, _held_out(pairs, selected, lift, story_counts, triples, min_lift)


def _select(pairs: LemmaPairs, lift: PairLift, contexts: np.ndarray, max_triples: int, min_lift: float) -> np.ndarray:
    """Return positions of the pairs to keep, the best of a head first."""
    min_lifts = np.where(contexts[pairs.heads] > 0, min_lift, UNSEEN_LIFT_RATIO * min_lift)
    candidates = np.flatnonzero(lift.lifts >= min_lifts)
    scores = lift.probabilities[candidates] * np.log(lift.lifts[candidates])
    heads = pairs.heads[candidates]
    # Ties go to the more frequent tail, which has the smaller number.
    order = np.lexsort((pairs.tails[candidates], -scores, heads))
    candidates, heads = candidates[order], heads[order]
    places = np.arange(len(heads)) - np.searchsorted(heads, heads)
    limits = np.where(contexts[heads] > 0, max_triples, min(max_triples, MAX_UNSEEN_TRIPLES))
    return candidates[places < limits]


def _held_out(
    pairs: LemmaPairs,
    selected: np.ndarray,
    lift: PairLift,
    counts: StoryCounts,
    triples: _Triples,
    min_lift: float,
) -> HeldOutWeights:
    kept = np.sort(selected)
    tail_ids = triples.tail_ids(pairs.tails[kept])
    chunks = []
    for stories, words, places in counts.occurrences(pairs.heads[kept], pairs.tails[kept]):
        lifts = lift.without(stories, kept[places])
        weights = np.where(lifts >= min_lift, np.log(np.maximum(lifts, 1e-12)), np.nan)
        chunks.append((stories, words, tail_ids[places], weights.astype(np.float32)))
    return HeldOutWeights(*(np.concatenate(parts) for parts in zip(*chunks, strict=True)))


class _Triples:
    """Pairs of lemmas as triples of words."""

    def __init__(self, lemmas: VocabularyLemmas, vocabulary: Mapping[str, int], pairs: LemmaPairs, lift: PairLift):
        self._lemmas, self._vocabulary, self._pairs, self._lift = lemmas, vocabulary, pairs, lift

    def tail_ids(self, tails: np.ndarray) -> np.ndarray:
        return np.array([self._vocabulary[self._lemmas.word_of(tail)] for tail in tails.tolist()], dtype=np.int64)

    def table(self, selected: np.ndarray, max_triples: int) -> KnowledgeTable:
        """Return the table of the words that retrieve the selected pairs."""
        by_head: dict[int, list[int]] = {}
        for position in selected.tolist():
            by_head.setdefault(int(self._pairs.heads[position]), []).append(position)
        graphs: dict[str, list[Triple]] = {}
        weights: dict[Triple, float] = {}
        for lemma, positions in by_head.items():
            values = [round(value, 4) for value in np.log(self._lift.lifts[positions]).tolist()]
            for word in self._surface_words(lemma):
                rows = [self._triple(position, lemma, word) for position in positions]
                graphs[word] = rows
                weights.update(zip(rows, values, strict=True))
        used = {relation for _, relation, _ in weights}
        relations = [name for name in self._pairs.names if name in used]
        forms = self._forms({tail for _, _, tail in weights})
        return KnowledgeTable(relations, max_triples, graphs, concepts=self._concepts(), weights=weights, forms=forms)

    def statistics(self, table: KnowledgeTable, counts: Mapping[str, int] | None) -> dict[str, Any]:
        query_words = [word for words in self._lemmas.words for word in words]
        unseen = [word for word in table.triples if word not in self._vocabulary]
        return {
            "num_words": self._lemmas.num_words + len(unseen),
            "num_unseen_words": len(unseen),
            **table_statistics(table.triples, {}, query_words, counts=counts, relations=table.relations),
        }

    def _forms(self, tails: Iterable[str]) -> dict[str, list[str]]:
        """Return the forms of the tails that have another one than themselves."""
        found = {tail: self._forms_of(tail) for tail in tails}
        return {tail: forms for tail, forms in found.items() if forms != [tail]}

    def _forms_of(self, tail: str) -> list[str]:
        index = int(self._lemmas.of_word[self._vocabulary[tail]])
        return list(dict.fromkeys([tail, *self._lemmas.words[index]]))[:_MAX_FORMS]

    def _concepts(self) -> dict[str, list[str]]:
        """Return the lemmas of words of the vocabulary that are not their own."""
        names, words = self._lemmas.names, self._lemmas.words
        return {word: [name] for name, forms in zip(names, words, strict=True) for word in forms if word != name}

    def _surface_words(self, lemma: int) -> list[str]:
        """Return the words of a lemma: those of the vocabulary, and inflected forms that it lacks."""
        name, words = self._lemmas.names[lemma], self._lemmas.words[lemma]
        # Dictionaries have verbs that stories do not use: `to sheet`, `to candle`.
        is_verb = not words or any(word.endswith(("ed", "ing")) for word in words) or not is_own_lemma(name)
        others = [form for form in inflections(name, is_verb) if self._lemmas.lemma(form) == name]
        return [*words, *(form for form in others if form not in self._vocabulary)]

    def _triple(self, position: int, lemma: int, word: str) -> Triple:
        """Return a triple whose head is the lemma, or a word of the vocabulary if the lemma is none."""
        name, words = self._lemmas.names[lemma], self._lemmas.words[lemma]
        head = word if word in words and name not in words else name
        relation = self._pairs.names[int(self._pairs.relations[position])]
        return head, relation, self._lemmas.word_of(int(self._pairs.tails[position]))
