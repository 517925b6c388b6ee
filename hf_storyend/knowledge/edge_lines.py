"""An edge of ConceptNet, and the three ways in which one is written on a line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ..modeling.knowledge_table import relation_name

PARTS_OF_SPEECH = frozenset("nvars")
MAX_LINE_LENGTH = 1 << 20
_MAX_WEIGHT = 1e16


class Edge(NamedTuple):
    """
    Two concepts and their relation, without `/r/`. Concepts are in lower case, their words joined by `_`; a part of
    speech is `n`, `v`, `a`, `s` (adjectives), `r` (adverbs), or None where it isn't known.
    """

    head: str
    relation: str
    tail: str
    weight: float = 1.0
    head_pos: str | None = None
    tail_pos: str | None = None


def relation_names(relations: Iterable[str] | None) -> list[str] | None:
    """Names of relations without `/r/`; None, for all, stays None."""
    if relations is None:
        return None
    names = [] if isinstance(relations, str) else [relation_name(relation) for relation in relations]
    if not names:
        raise ValueError(f"`relations` must be a list of at least one name, or None for all; got {relations!r}.")
    return names


class MalformedLineError(ValueError):
    """A line that can't be read; the message says why."""


class BlankLineError(ValueError):
    """A line with nothing on it, which is no mistake."""


# None: a sound line, but not about two concepts of the language that is read.
LineParser = Callable[[bytes], Edge | None]


def parse_compact_line(line: bytes) -> Edge:
    """`cook /r/AtLocation kitchen`."""
    parts = _text(line).split()
    if len(parts) != 3:
        raise MalformedLineError(f"{len(parts)} words instead of 3 (head, /r/Relation, tail)")
    head, relation, tail = parts
    if not relation.startswith("/r/"):
        raise MalformedLineError(f"the second word is {relation!r} instead of a relation like /r/IsA")
    return Edge(_concept(head), _relation(relation), _concept(tail))


def parse_phrase_line(line: bytes) -> Edge:
    """`AtLocation`, `hot soup`, `kitchen`, with tabs between them."""
    parts = _text(line).split("\t")
    if len(parts) != 3:
        raise MalformedLineError(f"{len(parts)} columns instead of 3 (relation, head, tail)")
    relation, head, tail = parts
    # A capital, so that a table in the order head, relation, tail isn't taken for this one.
    if not re.fullmatch(r"(?:/r/|[A-Z])\S*", relation):
        raise MalformedLineError(f"the first column is {relation!r} instead of a relation like IsA")
    return Edge(_concept(head), _relation(relation), _concept(tail))


class DumpLineParser:
    """Edges of lines of the assertions dump whose two concepts are of one language."""

    def __init__(self, language: str):
        self.prefix = f"/c/{language}"
        concept = rf"{re.escape(self.prefix)}/([^/\s]++)(?:/([nvars])(?:/[^\t\n]*+)?)?"
        # In valid JSON that ends like this, `weight` is a key of the outermost object: no need to parse the rest.
        weight = r'\{(?:.*, ?)?"weight": ?((?:0|[1-9][0-9]{0,15})(?:\.[0-9]+)?)\}'
        self._usual = re.compile(rf"^/a/[^\t\n]*+\t/r/([^\t\n]++)\t{concept}\t{concept}\t{weight}$", re.MULTILINE)

    def parse_usual(self, lines: list[bytes]) -> list[Edge] | None:
        """The edges of lines that are UTF-8 and have five columns, fast; None if one of them is out of the usual."""
        found = self._usual.findall(b"\n".join(lines).decode("utf-8"))
        if len(found) != len(lines):
            return None
        return [
            Edge(head.lower(), relation, tail.lower(), float(weight), head_pos or None, tail_pos or None)
            for relation, head, head_pos, tail, tail_pos, weight in found
        ]

    def __call__(self, line: bytes) -> Edge | None:
        text = _text(line)
        usual = self.parse_usual([line]) if text.count("\t") == 4 else None
        return usual[0] if usual else _parse_any_dump_line(text, self.prefix)


def edge_of_row(row: dict[str, Any], language: str) -> Edge | None:
    """An edge of a table's row: `head` and `tail` are words or `/c/` URIs, `weight` may be missing."""
    for name in ("head", "relation", "tail"):
        if not isinstance(row[name], str):
            raise MalformedLineError(f"`{name}` is {row[name]!r} instead of a string")
    weight = _weight(row.get("weight", 1.0))
    nodes = []
    for node in (row["head"], row["tail"]):
        if node.startswith("/c/") and not _is_of_language(node, f"/c/{language}"):
            return None
        nodes.append(_concept_and_pos(node, f"/c/{language}") if node.startswith("/c/") else (_concept(node), None))
    (head, head_pos), (tail, tail_pos) = nodes
    return Edge(head, _relation(row["relation"]), tail, weight, head_pos, tail_pos)


def _parse_any_dump_line(text: str, prefix: str) -> Edge | None:
    columns = text.split("\t")
    if len(columns) != 5:
        raise MalformedLineError(f"{len(columns)} columns instead of 5")
    assertion, relation, head, tail, information = columns
    for column, start in ((assertion, "/a/"), (relation, "/r/")):
        if not column.startswith(start):
            raise MalformedLineError(f"{_excerpt(column)} instead of a URI that starts with {start}")
    for node in (head, tail):
        # Edges to other data sets end in a web address.
        if not node.startswith(("/c/", "htt")):
            raise MalformedLineError(f"{_excerpt(node)} instead of a URI that starts with /c/ or http")
    if not (information.startswith("{") and information.endswith("}")):
        raise MalformedLineError(f"{_excerpt(information)} is not a JSON object")
    if not (_is_of_language(head, prefix) and _is_of_language(tail, prefix)):
        return None
    concepts = [_concept_and_pos(node, prefix) for node in (head, tail)]
    (head, head_pos), (tail, tail_pos) = concepts
    return Edge(head, _relation(relation), tail, _weight_of_json(information), head_pos, tail_pos)


def _text(line: bytes) -> str:
    if len(line) > MAX_LINE_LENGTH:
        raise MalformedLineError(f"longer than {MAX_LINE_LENGTH} bytes")
    if not line or line.isspace():
        raise BlankLineError("blank")
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MalformedLineError(f"byte {error.start + 1} is not UTF-8") from error


def _is_of_language(node: str, prefix: str) -> bool:
    return node == prefix or node.startswith(prefix + "/")


def _concept_and_pos(node: str, prefix: str) -> tuple[str, str | None]:
    concept, *rest = node[len(prefix) + 1 :].split("/")
    return _concept(concept), rest[0] if rest and rest[0] in PARTS_OF_SPEECH else None


def _concept(text: str) -> str:
    concept = "_".join(text.lower().split())
    if not concept:
        raise MalformedLineError("a concept is empty")
    return concept


def _relation(text: str) -> str:
    relation = relation_name(text)
    if not relation:
        raise MalformedLineError("the relation is empty")
    return relation


def _weight_of_json(information: str) -> float:
    try:
        content = json.loads(information)
    except (ValueError, RecursionError) as error:
        raise MalformedLineError(f"broken JSON: {error}") from error
    return _weight(content.get("weight", 1.0))


def _weight(value: Any) -> float:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    # The bound, which is far above any real weight, also keeps out infinity, NaN and numbers no float can hold.
    if not is_number or not -_MAX_WEIGHT <= value <= _MAX_WEIGHT:
        raise MalformedLineError(f"`weight` is {_excerpt(str(value))} instead of a number")
    return float(value)


def _excerpt(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
