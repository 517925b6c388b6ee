"""From the edges of ConceptNet to the triples of a vocabulary, by the rules of the paper."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict

from ..modeling.knowledge_table import KnowledgeTable, Triple
from .edge_lines import Edge, relation_names
from .read_report import ReadReport
from .selection import BestCandidates, Candidate, Policy, Rank, ranking
from .statistics import table_statistics
from .vocabulary_concepts import VocabularyConcepts

SYMMETRIC_RELATIONS = frozenset(
    "Antonym DistinctFrom EtymologicallyRelatedTo LocatedNear RelatedTo SimilarTo Synonym".split()
)


def build_knowledge_table(
    edges: Iterable[Edge],
    vocabulary: Mapping[str, int],
    *,
    counts: Mapping[str, int] | None = None,
    relations: Iterable[str] | None = None,
    max_triples: int = 10,
    policy: Policy = "weight_and_frequency",
    inverse: bool = False,
    symmetric: bool = False,
    multi_word: bool = False,
    report: ReadReport | None = None,
) -> KnowledgeTable:
    """
    The triples of every word of a vocabulary.

    A word retrieves the edges whose head is one of its lemmas or the word itself, as far as head and tail are nouns or
    verbs (by their URI or else by the lexicon), the tail is a word of the vocabulary and none of the word's own
    lemmas. There is one triple a tail and at most `max_triples` a word. The head of a triple is the lemma if the
    vocabulary has it, else the word.

    The edges are read once and in bounded memory; their order changes nothing.

    Args:
        edges (`Iterable[Edge]`): As from `read_edges`.
        vocabulary (`Mapping[str, int]`): Word ids by falling frequency. Symbols in `<...>` are not looked up.
        counts (`Mapping[str, int]`, *optional*): How often words occur, for the statistics only.
        relations (`Iterable[str]`, *optional*):
            Relations to keep, in the order of their ids. By default all that are left, in alphabetical order.
        max_triples (`int`, *optional*, defaults to 10): Most triples a word.
        policy (`str`, *optional*, defaults to `"weight_and_frequency"`): Which triples stay; see `selection.ranking`.
        inverse (`bool`, *optional*, defaults to `False`):
            Whether edges count from their tail too, under the same relation: (kitchen, AtLocation, cook) as well.
        symmetric (`bool`, *optional*, defaults to `False`): The same for symmetric relations such as Synonym only.
        multi_word (`bool`, *optional*, defaults to `False`):
            Whether heads of several words are kept, to be matched in text as they are written.
        report (`ReadReport`, *optional*): That of the reader; it joins the statistics.
    """
    names = relation_names(relations)
    # A bad argument is refused before the edges are read, which can take minutes.
    KnowledgeTable(names or (), max_triples)
    words = VocabularyConcepts(vocabulary)
    rank = ranking(policy, words.ranks)
    # More than will stay: a word's own lemmas, and the last word of a phrase, are left out later.
    of_concepts = BestCandidates(rank, max_triples + words.max_concepts)
    of_phrases = BestCandidates(rank, max_triples + 1)
    for edge in _directed(edges, names, inverse, symmetric):
        if not words.is_tail(edge.tail, edge.tail_pos):
            continue
        candidate = Candidate(edge.relation, edge.tail, edge.weight)
        if words.is_head(edge.head, edge.head_pos):
            of_concepts.add(edge.head, candidate)
        elif multi_word and (phrase := words.phrase_of(edge.head, edge.head_pos)):
            of_phrases.add(phrase, candidate)
    triples = _first(max_triples, {word: _triples_of_word(word, words, of_concepts, rank) for word in words.concepts})
    phrases = _first(max_triples, {phrase: _triples_of_phrase(phrase, words, of_phrases) for phrase in of_phrases})
    if not triples and not phrases:
        raise ValueError(
            "No edge has a noun or verb of the vocabulary at both ends, so there is nothing to retrieve. "
            "Look at the vocabulary's language, at `relations`, and at what was read."
        )
    statistics = {
        "policy": policy,
        "max_triples": max_triples,
        "inverse": inverse,
        "symmetric": symmetric,
        "multi_word": multi_word,
        **table_statistics(triples, phrases, words, counts, names or ()),
        **({"reading": asdict(report)} if report is not None else {}),
    }
    used = names or sorted(statistics["relations"])
    return KnowledgeTable(used, max_triples, triples, words.other_concepts(), phrases, statistics)


def _directed(edges: Iterable[Edge], relations: list[str] | None, inverse: bool, symmetric: bool) -> Iterator[Edge]:
    """The edges of these relations, followed by their mirror images where they are wanted."""
    kept = None if relations is None else frozenset(relations)
    for edge in edges:
        if kept is not None and edge.relation not in kept:
            continue
        yield edge
        if inverse or (symmetric and edge.relation in SYMMETRIC_RELATIONS):
            yield edge._replace(head=edge.tail, tail=edge.head, head_pos=edge.tail_pos, tail_pos=edge.head_pos)


def _first(max_triples: int, graphs: dict[str, list[Triple]]) -> dict[str, list[Triple]]:
    return {key: triples[:max_triples] for key, triples in graphs.items() if triples}


def _triples_of_word(word: str, words: VocabularyConcepts, best: BestCandidates, rank: Rank) -> list[Triple]:
    """Those of all its concepts, ranked together; of two equally good ones that of the likelier concept is first."""
    concepts = words.concepts[word]
    found = [(rank(candidate), place, candidate) for place, key in enumerate(concepts) for candidate in best.of(key)]
    own = {word.lower(), *concepts}
    by_tail: dict[str, Triple] = {}
    for _, place, candidate in sorted(found):
        if candidate.tail not in own:
            head, tail = words.words.get(concepts[place], word), words.words[candidate.tail]
            by_tail.setdefault(tail, (head, candidate.relation, tail))
    return list(by_tail.values())


def _triples_of_phrase(phrase: str, words: VocabularyConcepts, best: BestCandidates) -> list[Triple]:
    head = phrase.split(" ")[-1]
    tails = [(candidate.relation, words.words[candidate.tail]) for candidate in best.of(phrase)]
    return [(head, relation, tail) for relation, tail in tails if tail != head]
