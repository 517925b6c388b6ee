"""`build_knowledge_table`: from a stream of edges to the triples of a vocabulary, by the rules of the paper."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict

from ..modeling.knowledge_table import KnowledgeTable, Triple
from .edges import Edge, ReadReport, relation_names
from .lexicon import PARTICLES, is_content_word, is_in_dictionary, is_noun_or_verb, lemmas
from .relations import SYMMETRIC_RELATIONS
from .selection import Candidate, Policy, Rank, TopCandidates, ranking
from .statistics import table_statistics

_NOUN_OR_VERB = ("n", "v")


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
    Build the knowledge table of a vocabulary.

    A word retrieves the edges whose head is the word or one of its lemmas. Head and tail must be nouns or verbs (by
    their URI or else by the lexicon), and the tail a word of the vocabulary other than the word's own lemmas. A word
    has one triple per tail and at most `max_triples` triples. The head of a triple is the lemma if the vocabulary has
    it, else the word.

    Edges are read once and in bounded memory. Their order does not change the result.

    Args:
        edges (`Iterable[Edge]`): As from `read_edges`.
        vocabulary (`Mapping[str, int]`): Word ids by descending frequency. Special tokens, in `<...>`, are skipped.
        counts (`Mapping[str, int]`, *optional*): Frequencies of words, for the statistics only.
        relations (`Iterable[str]`, *optional*):
            Relations to keep, in the order of their ids. By default all that occur, in alphabetical order.
        max_triples (`int`, *optional*, defaults to 10): Maximum number of triples per word.
        policy (`str`, *optional*, defaults to `"weight_and_frequency"`):
            Ranking that selects the triples of a word; see `hf_storyend.knowledge.selection.ranking`.
        inverse (`bool`, *optional*, defaults to `False`):
            Add the inverse of every edge, under the same relation: (kitchen, AtLocation, cook), too.
        symmetric (`bool`, *optional*, defaults to `False`): Add the inverse of edges with a symmetric relation.
        multi_word (`bool`, *optional*, defaults to `False`): Keep multi-word heads, to be matched in text as written.
        report (`ReadReport`, *optional*): Report of `read_edges`, to be included in the statistics.
    """
    names = relation_names(relations)
    # Bad arguments are refused before edges are read, which can take minutes.
    KnowledgeTable(names or (), max_triples)
    concepts = VocabularyConcepts(vocabulary)
    rank = ranking(policy, concepts.ranks)
    triples, phrases = _select(_directed(edges, names, inverse, symmetric), concepts, rank, max_triples, multi_word)
    if not triples and not phrases:
        raise ValueError(
            "No edge has a noun or verb of the vocabulary at both ends, so there is nothing to retrieve. "
            "Check the vocabulary's language, `relations`, and what was read."
        )
    statistics = {
        "policy": policy,
        "max_triples": max_triples,
        "inverse": inverse,
        "symmetric": symmetric,
        "multi_word": multi_word,
        "num_words": concepts.num_words,
        **table_statistics(triples, phrases, concepts.query_words(), counts=counts, relations=names or ()),
        **({"reading": asdict(report)} if report is not None else {}),
    }
    names = names or sorted(statistics["relations"])
    return KnowledgeTable(names, max_triples, triples, concepts.other_concepts(), phrases, statistics)


def _directed(edges: Iterable[Edge], relations: list[str] | None, inverse: bool, symmetric: bool) -> Iterator[Edge]:
    """Iterate over the edges with these relations, each followed by its inverse where that is wanted."""
    kept = None if relations is None else frozenset(relations)
    for edge in edges:
        if kept is not None and edge.relation not in kept:
            continue
        yield edge
        if inverse or (symmetric and edge.relation in SYMMETRIC_RELATIONS):
            yield edge._replace(head=edge.tail, tail=edge.head, head_pos=edge.tail_pos, tail_pos=edge.head_pos)


def _select(
    edges: Iterable[Edge], concepts: VocabularyConcepts, rank: Rank, max_triples: int, multi_word: bool
) -> tuple[dict[str, list[Triple]], dict[str, list[Triple]]]:
    """Return the best triples of words and of phrases, for those that have any."""
    # More than will stay: a word's own lemmas, and the last word of a phrase, are dropped later.
    of_words = TopCandidates(rank, max_triples + concepts.max_concepts)
    of_phrases = TopCandidates(rank, max_triples + 1)
    for edge in edges:
        if not concepts.is_tail(edge.tail, edge.tail_pos):
            continue
        candidate = Candidate(edge.relation, edge.tail, edge.weight)
        if concepts.is_head(edge.head, edge.head_pos):
            of_words.add(edge.head, candidate)
        elif multi_word and (phrase := concepts.phrase_of(edge.head, edge.head_pos)):
            of_phrases.add(phrase, candidate)
    triples = {word: _triples_of_word(word, concepts, of_words, rank) for word in concepts.of_word}
    phrases = {phrase: _triples_of_phrase(phrase, concepts, of_phrases) for phrase in of_phrases}
    return _limit(triples, max_triples), _limit(phrases, max_triples)


def _limit(graphs: dict[str, list[Triple]], max_triples: int) -> dict[str, list[Triple]]:
    return {key: triples[:max_triples] for key, triples in graphs.items() if triples}


def _triples_of_word(word: str, concepts: VocabularyConcepts, best: TopCandidates, rank: Rank) -> list[Triple]:
    """Return the triples of all concepts of a word, ranked together; ties go to the more likely concept."""
    heads = concepts.of_word[word]
    found = [(rank(candidate), place, candidate) for place, head in enumerate(heads) for candidate in best.of(head)]
    own = {word.lower(), *heads}
    by_tail: dict[str, Triple] = {}
    for _, place, candidate in sorted(found):
        if candidate.tail not in own:
            head, tail = concepts.words.get(heads[place], word), concepts.words[candidate.tail]
            by_tail.setdefault(tail, (head, candidate.relation, tail))
    return list(by_tail.values())


def _triples_of_phrase(phrase: str, concepts: VocabularyConcepts, best: TopCandidates) -> list[Triple]:
    head = phrase.split(" ")[-1]
    tails = [(candidate.relation, concepts.words[candidate.tail]) for candidate in best.of(phrase)]
    return [(head, relation, tail) for relation, tail in tails if tail != head]


class VocabularyConcepts:
    """
    Concepts of a vocabulary, all in lower case.

    Attributes:
        words: Word of each concept that is spelt like one: in lower case, or else its most frequent cased form.
        ranks: Rank of that word by descending frequency.
        of_word: Concepts of each word, the most likely first: its lemmas and itself. Function words, punctuation and
            numbers have none.
        num_words: Size of the vocabulary without special tokens.
        max_concepts: Maximum number of concepts of a word.
    """

    def __init__(self, vocabulary: Mapping[str, int]):
        ranked = [word for word in sorted(vocabulary, key=vocabulary.__getitem__) if not _is_special(word)]
        self.num_words = len(ranked)
        self.words: dict[str, str] = {}
        for word in ranked:
            self.words.setdefault(word.lower(), word)
        self.words.update({word: word for word in ranked if word == word.lower()})
        self.ranks = {concept: vocabulary[word] for concept, word in self.words.items()}
        found = {word: self._concepts_of(word.lower()) for word in ranked}
        self.of_word = {word: concepts for word, concepts in found.items() if concepts}
        self.max_concepts = max(map(len, self.of_word.values()), default=0)
        self._heads = {concept for concepts in self.of_word.values() for concept in concepts}

    def query_words(self) -> list[str]:
        """Return the words that can be nouns or verbs."""
        return [word for word in self.of_word if is_noun_or_verb(word.lower())]

    def other_concepts(self) -> dict[str, list[str]]:
        """Return the concepts of words other than the words themselves, for words that have any."""
        others = {word: [concept for concept in found if concept != word] for word, found in self.of_word.items()}
        return {word: found for word, found in others.items() if found}

    def is_head(self, concept: str, part_of_speech: str | None) -> bool:
        """Return whether a concept is a noun or verb and the concept of a word."""
        return concept in self._heads and _is_noun_or_verb(concept, part_of_speech)

    def is_tail(self, concept: str, part_of_speech: str | None) -> bool:
        """Return whether a concept is a noun or verb and spelt like a word."""
        return concept in self.words and _is_noun_or_verb(concept, part_of_speech)

    def phrase_of(self, concept: str, part_of_speech: str | None) -> str | None:
        """Return the words of a multi-word concept joined by blanks, or None if the vocabulary lacks one."""
        parts = concept.split("_")
        if len(parts) == 1 or any(part not in self.words for part in parts):
            return None
        is_wanted = part_of_speech in _NOUN_OR_VERB if part_of_speech else _is_noun_or_verb_phrase(parts)
        return " ".join(self.words[part] for part in parts) if is_wanted else None

    def _concepts_of(self, word: str) -> list[str]:
        if not is_content_word(word):
            return []
        existing = (lemma for lemma in lemmas(word) if lemma in self.words or is_in_dictionary(lemma))
        return list(dict.fromkeys([*existing, word]))


def _is_noun_or_verb(concept: str, part_of_speech: str | None) -> bool:
    if part_of_speech is None:
        return is_noun_or_verb(concept)
    return part_of_speech in _NOUN_OR_VERB and is_content_word(concept)


def _is_noun_or_verb_phrase(parts: list[str]) -> bool:
    """True for `birthday cake` and `dress up`; false for `all fruit` and `thank someone`, common in ConceptNet."""
    first, last = parts[0], parts[-1]
    return (is_content_word(first) and is_noun_or_verb(last)) or (is_noun_or_verb(first) and last in PARTICLES)


def _is_special(word: str) -> bool:
    return word.startswith("<") and word.endswith(">") and len(word) > 2
