"""How many triples a table has for how many words, in numbers and in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ..modeling.knowledge_table import Triple
from .read_report import ReadReport
from .vocabulary_concepts import VocabularyConcepts

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
