"""From the edges of ConceptNet to the triples of a vocabulary, by the rules of the paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, Literal, NamedTuple, get_args

from ..modeling.knowledge_table import KnowledgeTable, Triple
from .dump_reader import Edge, ReadReport, relation_names
from .lexicon import PARTICLES, is_content_word, is_in_dictionary, is_noun_or_verb, lemmas

_NOUN_OR_VERB = ("n", "v")


class VocabularyConcepts:
    """
    A vocabulary as ConceptNet sees it, all in lower case.

    - `words` maps a concept to the word of the vocabulary that is written like it: itself, or else its most frequent
      form with capitals.
    - `ranks` maps a concept to the place of that word by falling frequency.
    - `concepts` maps a word to its concepts, the likeliest first: its lemmas, and itself. Function words, marks and
      numbers have none.
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
        self.concepts = {word: concepts for word, concepts in found.items() if concepts}
        self.max_concepts = max(map(len, self.concepts.values()), default=0)
        self._heads = {concept for concepts in self.concepts.values() for concept in concepts}

    def query_words(self) -> list[str]:
        """The words that can be nouns or verbs."""
        return [word for word in self.concepts if is_noun_or_verb(word.lower())]

    def other_concepts(self) -> dict[str, list[str]]:
        """Concepts of words other than themselves, for the words that have any."""
        others = {word: [concept for concept in found if concept != word] for word, found in self.concepts.items()}
        return {word: found for word, found in others.items() if found}

    def is_head(self, concept: str, part_of_speech: str | None) -> bool:
        """Whether it is a noun or verb that some word stands for."""
        return concept in self._heads and _is_noun_or_verb(concept, part_of_speech)

    def is_tail(self, concept: str, part_of_speech: str | None) -> bool:
        """Whether it is a noun or verb of the vocabulary."""
        return concept in self.words and _is_noun_or_verb(concept, part_of_speech)

    def phrase_of(self, concept: str, part_of_speech: str | None) -> str | None:
        """The words of a concept of several, with blanks between them, if the vocabulary has them all."""
        parts = concept.split("_")
        if len(parts) == 1 or any(part not in self.words for part in parts):
            return None
        is_wanted = part_of_speech in _NOUN_OR_VERB if part_of_speech else _is_about_something(parts)
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


def _is_about_something(parts: list[str]) -> bool:
    """Keeps `birthday cake` and `dress up`; not `all fruit` and `thank someone`, of which ConceptNet has plenty."""
    first, last = parts[0], parts[-1]
    return (is_content_word(first) and is_noun_or_verb(last)) or (is_noun_or_verb(first) and last in PARTICLES)


def _is_special(word: str) -> bool:
    return word.startswith("<") and word.endswith(">") and len(word) > 2


Policy = Literal["weight", "tail_frequency", "weight_and_frequency"]


class Candidate(NamedTuple):
    """What can be said of a concept: it has this relation to that tail."""

    relation: str
    tail: str
    weight: float


Rank = Callable[[Candidate], tuple[Any, ...]]


def ranking(policy: Policy, tail_ranks: Mapping[str, int]) -> Rank:
    """
    The order of candidates, the best first:

    - `"weight"`: by falling weight.
    - `"tail_frequency"`: by falling frequency of the tail in the stories, as the authors of the model did.
    - `"weight_and_frequency"`: by falling weight, and where that is equal by falling frequency of the tail.

    Whatever is still equal goes by the alphabet, tails before relations. Of two with the same tail the one of more
    weight is the better one in all three.
    """
    if policy == "weight":
        return lambda found: (-found.weight, found.tail, found.relation)
    if policy == "tail_frequency":
        return lambda found: (tail_ranks[found.tail], -found.weight, found.relation)
    if policy == "weight_and_frequency":
        return lambda found: (-found.weight, tail_ranks[found.tail], found.relation)
    raise ValueError(f"`policy` must be one of {', '.join(map(repr, get_args(Policy)))}; got {policy!r}.")


class BestCandidates:
    """
    The `size` best candidates of every key, no two with the same tail. What can't be among them any more is thrown
    away as soon as there are several times as many; the order in which they come changes nothing.
    """

    def __init__(self, rank: Rank, size: int):
        self._rank = rank
        self._size = size
        self._limit = 4 * size
        self._by_key: dict[str, dict[str, Candidate]] = {}

    def add(self, key: str, candidate: Candidate) -> None:
        by_tail = self._by_key.setdefault(key, {})
        old = by_tail.get(candidate.tail)
        if old is None or self._rank(candidate) < self._rank(old):
            by_tail[candidate.tail] = candidate
            if len(by_tail) > self._limit:
                self._by_key[key] = {found.tail: found for found in self._best(by_tail.values())}

    def of(self, key: str) -> list[Candidate]:
        """The best, in their order."""
        return self._best(self._by_key.get(key, {}).values())

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_key)

    def _best(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        return sorted(candidates, key=self._rank)[: self._size]


_SHOWN_RELATIONS = 10


def table_statistics(
    triples: Mapping[str, list[Triple]],
    phrases: Mapping[str, list[Triple]],
    words: VocabularyConcepts,
    counts: Mapping[str, int] | None = None,
    relations: Iterable[str] = (),
) -> dict[str, Any]:
    """
    Numbers of words and triples, means of triples a word, and triples by relation, with those in `relations` that
    have none.

    Three means, as it isn't said over which words the paper's 3.4 is taken: over the words that have a triple, over
    the query words (all that can be nouns or verbs, or have a triple), and, with `counts`, over the running words of
    the stories, whatever they are.
    """
    num_triples = sum(map(len, triples.values()))
    num_query_words = len({*words.query_words(), *triples})
    statistics: dict[str, Any] = {
        "num_words": words.num_words,
        "num_query_words": num_query_words,
        "num_covered_words": len(triples),
        "num_triples": num_triples,
        "triples_per_covered_word": num_triples / max(len(triples), 1),
        "triples_per_query_word": num_triples / max(num_query_words, 1),
        "most_triples_of_a_word": max(map(len, triples.values()), default=0),
        "num_phrases": len(phrases),
    }
    if counts is not None:
        statistics |= _running_statistics(triples, counts)
    found = Counter(dict.fromkeys(relations, 0))
    found.update(triple[1] for graphs in (triples, phrases) for rows in graphs.values() for triple in rows)
    statistics["relations"] = dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))
    return statistics


def _running_statistics(triples: Mapping[str, list[Triple]], counts: Mapping[str, int]) -> dict[str, float]:
    num_running = max(sum(counts.values()), 1)
    return {
        "triples_per_running_word": sum(counts.get(word, 0) * len(rows) for word, rows in triples.items())
        / num_running,
        "covered_running_words": sum(counts.get(word, 0) for word in triples) / num_running,
    }


def describe(statistics: Mapping[str, Any]) -> str:
    """The statistics of a table in a few lines."""
    lines = [
        f"{statistics['num_triples']:,} triples for {statistics['num_covered_words']:,} of "
        f"{statistics['num_words']:,} words, {statistics['num_query_words']:,} of which can be nouns or verbs",
        f"{statistics['triples_per_covered_word']:.1f} triples a word that has any, "
        f"{statistics['triples_per_query_word']:.1f} a noun or verb, "
        f"{statistics['most_triples_of_a_word']} at most (policy: {statistics['policy']})",
    ]
    if "triples_per_running_word" in statistics:
        lines.append(
            f"{statistics['triples_per_running_word']:.1f} triples a running word; "
            f"{statistics['covered_running_words']:.0%} of the running words have one"
        )
    if statistics["inverse"] or statistics["symmetric"]:
        lines.append(f"edges count from their tail too: {'all' if statistics['inverse'] else 'the symmetric ones'}")
    if statistics["multi_word"]:
        lines.append(f"{statistics['num_phrases']:,} concepts of several words")
    relations = list(statistics["relations"].items())
    shown = ", ".join(f"{name} {count:,}" for name, count in relations[:_SHOWN_RELATIONS])
    hidden = f" and {len(relations) - _SHOWN_RELATIONS} more" if len(relations) > _SHOWN_RELATIONS else ""
    lines.append(f"relations: {shown}{hidden}")
    if "reading" in statistics:
        lines.append("read: " + ReadReport(**statistics["reading"]).describe())
    return "\n".join(lines)


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
