"""Edges of a knowledge graph, and the report on reading them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from ..modeling.knowledge_table import relation_name

_MAX_EXAMPLES = 5
_MAX_EXCERPT = 80


class Edge(NamedTuple):
    """
    An edge of ConceptNet: two concepts and their relation.

    Args:
        head, tail: Concepts in lower case; the words of a multi-word concept are joined by `_`.
        relation: Name without `/r/`.
        weight: Confidence of ConceptNet; 1 where a source has none.
        head_pos, tail_pos: Part of speech: `n`, `v`, `a` or `s` (adjectives), `r` (adverbs), or None if unknown.
    """

    head: str
    relation: str
    tail: str
    weight: float = 1.0
    head_pos: str | None = None
    tail_pos: str | None = None


def relation_names(relations: Iterable[str] | None) -> list[str] | None:
    """Return names of relations without `/r/`, or None, for all relations, if `relations` is None."""
    if relations is None:
        return None
    names = [] if isinstance(relations, str) else [relation_name(relation) for relation in relations]
    if not names:
        raise ValueError(f"`relations` must be a list of at least one name, or None for all; got {relations!r}.")
    return names


@dataclass
class ReadReport:
    """
    Counts of non-blank lines by outcome.

    Args:
        num_lines: Sum of the counts below.
        num_edges: Lines that gave an edge.
        num_other_language: Lines with a concept of another language, or with a web address, at either end.
        num_filtered: Edges dropped by relation or weight.
        num_malformed: Lines that could not be parsed.
        examples: The first malformed lines, with file, line number and reason.
    """

    num_lines: int = 0
    num_edges: int = 0
    num_other_language: int = 0
    num_filtered: int = 0
    num_malformed: int = 0
    examples: list[str] = field(default_factory=list)

    def add_malformed(self, name: str, line_number: int, reason: object, line: object) -> None:
        """Count a malformed line; the first few are kept as examples."""
        self.num_malformed += 1
        if len(self.examples) < _MAX_EXAMPLES:
            text = line.decode("utf-8", "backslashreplace") if isinstance(line, bytes) else str(line)
            self.examples.append(f"{name}, line {line_number}: {reason}: {excerpt(text, _MAX_EXCERPT)}")

    def describe(self) -> str:
        """Return a line of counts and, below it, the first malformed lines."""
        lines = [
            f"{self.num_lines:,} lines: {self.num_edges:,} edges, {self.num_other_language:,} of other languages, "
            f"{self.num_filtered:,} filtered, {self.num_malformed:,} malformed"
        ]
        lines += [f"  {example}" for example in self.examples]
        if self.num_malformed > len(self.examples):
            lines.append(f"  and {self.num_malformed - len(self.examples):,} more")
        return "\n".join(lines)


def excerpt(text: str, max_length: int = 60) -> str:
    """Return a text in quotes, cut to `max_length` characters."""
    return repr(text if len(text) <= max_length else text[: max_length - 3] + "...")
