"""Statistics of a knowledge table, as numbers and as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ..modeling.knowledge_table import Triple
from .edges import ReadReport

_MAX_RELATIONS_SHOWN = 10


def table_statistics(
    triples: Mapping[str, list[Triple]],
    phrases: Mapping[str, list[Triple]],
    query_words: Collection[str],
    *,
    counts: Mapping[str, int] | None = None,
    relations: Iterable[str] = (),
) -> dict[str, Any]:
    """
    Return numbers of words and triples, mean triples per word, and triples by relation.

    The paper reports 3.4 triples without saying over which words, so there are three means: over words that have a
    triple; over query words, which can be nouns or verbs or have a triple; and, with `counts`, over all running words
    of the stories.

    Args:
        triples: Triples of each word.
        phrases: Triples of each multi-word concept.
        query_words: Words that can be nouns or verbs.
        counts: Frequency of each word in the stories.
        relations: Relations to list even if they have no triple.
    """
    num_triples = sum(map(len, triples.values()))
    num_query_words = len({*query_words, *triples})
    statistics: dict[str, Any] = {
        "num_query_words": num_query_words,
        "num_covered_words": len(triples),
        "num_triples": num_triples,
        "triples_per_covered_word": num_triples / max(len(triples), 1),
        "triples_per_query_word": num_triples / max(num_query_words, 1),
        "most_triples_of_a_word": max(map(len, triples.values()), default=0),
        "num_phrases": len(phrases),
    }
    if counts is not None:
        statistics |= _running_word_statistics(triples, counts)
    found = Counter(dict.fromkeys(relations, 0))
    found.update(triple[1] for graphs in (triples, phrases) for rows in graphs.values() for triple in rows)
    statistics["relations"] = dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))
    return statistics


def _running_word_statistics(triples: Mapping[str, list[Triple]], counts: Mapping[str, int]) -> dict[str, float]:
    num_running = max(sum(counts.values()), 1)
    num_triples = sum(counts.get(word, 0) * len(rows) for word, rows in triples.items())
    return {
        "triples_per_running_word": num_triples / num_running,
        "covered_running_words": sum(counts.get(word, 0) for word in triples) / num_running,
    }


def describe_statistics(statistics: Mapping[str, Any]) -> str:
    """Return the statistics of a table in a few lines of text."""
    lines = [
        f"{statistics['num_triples']:,} triples for {statistics['num_covered_words']:,} of "
        f"{statistics['num_words']:,} words, {statistics['num_query_words']:,} of which can be nouns or verbs",
        f"{statistics['triples_per_covered_word']:.1f} triples per word that has any, "
        f"{statistics['triples_per_query_word']:.1f} per noun or verb, "
        f"{statistics['most_triples_of_a_word']} at most (policy: {statistics['policy']})",
    ]
    if "num_unseen_words" in statistics:
        lines.append(f"{statistics['num_unseen_words']:,} of these words are out of the vocabulary")
    if "triples_per_running_word" in statistics:
        lines.append(
            f"{statistics['triples_per_running_word']:.1f} triples per running word; "
            f"{statistics['covered_running_words']:.0%} of the running words have one"
        )
    if statistics["inverse"] or statistics["symmetric"]:
        lines.append(f"inverse triples of {'all' if statistics['inverse'] else 'symmetric'} relations")
    if statistics["multi_word"]:
        lines.append(f"{statistics['num_phrases']:,} multi-word concepts")
    if "reach" in statistics:
        lines.append(_describe_reach(statistics["reach"]))
    lines.append(f"relations: {_describe_relations(statistics['relations'])}")
    if "reading" in statistics:
        lines.append("read: " + ReadReport(**statistics["reading"]).describe())
    return "\n".join(lines)


def _describe_reach(reach: Mapping[str, Any]) -> str:
    return (
        f"reach: {reach['reach']:.1%} of the {reach['num_new_words']:,} new content words of {reach['num_stories']:,} "
        f"validation endings are tails of their story, which has {reach['tails_per_story']:.1f} tails on average"
    )


def _describe_relations(counts: Mapping[str, int]) -> str:
    shown = ", ".join(f"{name} {count:,}" for name, count in list(counts.items())[:_MAX_RELATIONS_SHOWN])
    num_hidden = len(counts) - _MAX_RELATIONS_SHOWN
    return f"{shown} and {num_hidden} more" if num_hidden > 0 else shown
