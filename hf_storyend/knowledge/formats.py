"""
File formats of knowledge: how a format is recognised, and how its lines become edges.

- The assertions dump of ConceptNet: five columns separated by tabs, with weight, language and part of speech.
- A compact list: `cook /r/AtLocation kitchen`.
- Phrases: relation, head and tail separated by tabs.

Rows of a `datasets` table are parsed here as well.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..modeling.knowledge_table import relation_name
from .blocks import MAX_LINE_LENGTH, DumpScan, line_blocks
from .edges import Edge, excerpt

_SAMPLE_SIZE = 1 << 16
_PARTS_OF_SPEECH = frozenset("nvars")
_MAX_WEIGHT = 1e16


class MalformedLineError(ValueError):
    """A line that can't be parsed; the message gives the reason."""


class BlankLineError(ValueError):
    """A line of white space, which is not an error of the file."""


@dataclass
class ParsedBlock:
    """Edges and counts of a block of lines; malformed lines with their position in the block, from 0."""

    num_lines: int
    edges: list[Edge] = field(default_factory=list)
    num_other_language: int = 0
    num_blank: int = 0
    malformed: list[tuple[int, Any, MalformedLineError]] = field(default_factory=list)


# None: a well-formed line with a concept of another language.
LineParser = Callable[[bytes], Edge | None]
BlockParser = Callable[[bytes], ParsedBlock]


def recognise_format(path: Path, language: str) -> BlockParser:
    """Return the parser for the format of a file: the first in which one of its first lines is well-formed."""
    dump_parser = DumpLineParser(language)
    formats: list[tuple[LineParser, BlockParser]] = [
        (dump_parser, dump_parser.parse_block),
        (parse_compact_line, lambda block: _parse_block(parse_compact_line, block)),
        (parse_phrase_line, lambda block: _parse_block(parse_phrase_line, block)),
    ]
    lines = [line for line in next(line_blocks(path, _SAMPLE_SIZE), b"").split(b"\n") if line.strip()]
    for line in lines:
        for parse_line, parse_block in formats:
            with contextlib.suppress(MalformedLineError):
                parse_line(line)
                return parse_block
    if not lines:
        raise ValueError(f"{path} is empty: it must have edges of ConceptNet.")
    raise ValueError(
        f"{path} is in no known format. It starts with {lines[0][:80]!r}; a line must be one of the assertions dump "
        "(5 columns with tabs), or `head /r/Relation tail`, or relation, head and tail with tabs between them."
    )


def parse_lines(parse: Callable[[Any], Edge | None], lines: Sequence[tuple[int, Any]], num_lines: int) -> ParsedBlock:
    """
    Parse lines of a block one by one.

    Args:
        parse: Parser of a line.
        lines: Positions in the block and lines; those left out are of another language.
        num_lines: Number of lines in the block.
    """
    block = ParsedBlock(num_lines, num_other_language=num_lines - len(lines))
    for position, line in lines:
        try:
            edge = parse(line)
        except BlankLineError:
            block.num_blank += 1
        except MalformedLineError as error:
            block.malformed.append((position, line, error))
        else:
            if edge is None:
                block.num_other_language += 1
            else:
                block.edges.append(edge)
    return block


def _parse_block(parse: LineParser, block: bytes) -> ParsedBlock:
    lines = block.removesuffix(b"\n").split(b"\n")
    return parse_lines(parse, list(enumerate(lines)), len(lines))


def parse_compact_line(line: bytes) -> Edge:
    """Parse `cook /r/AtLocation kitchen`."""
    parts = _decode(line).split()
    if len(parts) != 3:
        raise MalformedLineError(f"{len(parts)} words instead of 3 (head, /r/Relation, tail)")
    head, relation, tail = parts
    if not relation.startswith("/r/"):
        raise MalformedLineError(f"the second word is {relation!r} instead of a relation like /r/IsA")
    return Edge(_concept(head), _relation(relation), _concept(tail))


def parse_phrase_line(line: bytes) -> Edge:
    """Parse `AtLocation`, `hot soup` and `kitchen` with tabs between them."""
    parts = _decode(line).split("\t")
    if len(parts) != 3:
        raise MalformedLineError(f"{len(parts)} columns instead of 3 (relation, head, tail)")
    relation, head, tail = parts
    # A capital is required, so that head, relation, tail in this order is not mistaken for it.
    if not re.fullmatch(r"(?:/r/|dbpedia/|[A-Z])\S*", relation):
        raise MalformedLineError(f"the first column is {relation!r} instead of a relation like IsA")
    return Edge(_concept(head), _relation(relation), _concept(tail))


class DumpLineParser:
    """Parser of the assertions dump: a regular expression for common lines, and a slow path for all others."""

    def __init__(self, language: str):
        self._prefix = f"/c/{language}"
        concept = rf"{re.escape(self._prefix)}/([^/\s]++)(?:/([nvars])(?:/[^\t\n]*+)?)?"
        # In valid JSON that ends like this, `weight` is a key of the outermost object: no need to parse the rest.
        weight = r'\{(?:.*, ?)?"weight": ?((?:0|[1-9][0-9]{0,15})(?:\.[0-9]+)?)\}'
        self._common = re.compile(rf"^/a/[^\t\n]*+\t/r/([^\t\n]++)\t{concept}\t{concept}\t{weight}$", re.MULTILINE)

    def __call__(self, line: bytes) -> Edge | None:
        text = _decode(line)
        common = self._parse_common([line]) if text.count("\t") == 4 else None
        return common[0] if common else _parse_any_dump_line(text, self._prefix)

    def parse_block(self, block: bytes) -> ParsedBlock:
        """Parse the lines of a block that a vectorised scan does not rule out."""
        scan = DumpScan(block, self._prefix)
        lines = scan.lines_to_parse()
        edges = self._parse_common([line for _, line in lines]) if scan.is_regular else None
        if edges is None:
            return parse_lines(self, lines, scan.num_lines)
        return ParsedBlock(scan.num_lines, edges, scan.num_lines - len(lines))

    def _parse_common(self, lines: list[bytes]) -> list[Edge] | None:
        """Parse lines that are UTF-8 and have five columns; None if one of them needs the slow path."""
        found = self._common.findall(b"\n".join(lines).decode("utf-8"))
        if len(found) != len(lines):
            return None
        return [
            Edge(head.lower(), relation, tail.lower(), float(weight), head_pos or None, tail_pos or None)
            for relation, head, head_pos, tail, tail_pos, weight in found
        ]


def _parse_any_dump_line(text: str, prefix: str) -> Edge | None:
    columns = text.split("\t")
    if len(columns) != 5:
        raise MalformedLineError(f"{len(columns)} columns instead of 5")
    assertion, relation, head, tail, information = columns
    for column, start in ((assertion, "/a/"), (relation, "/r/")):
        if not column.startswith(start):
            raise MalformedLineError(f"{excerpt(column)} instead of a URI that starts with {start}")
    for node in (head, tail):
        # Edges to other data sets end in a web address.
        if not node.startswith(("/c/", "htt")):
            raise MalformedLineError(f"{excerpt(node)} instead of a URI that starts with /c/ or http")
    if not (information.startswith("{") and information.endswith("}")):
        raise MalformedLineError(f"{excerpt(information)} is not a JSON object")
    if not (_is_of_language(head, prefix) and _is_of_language(tail, prefix)):
        return None
    (head, head_pos), (tail, tail_pos) = (_concept_and_pos(node, prefix) for node in (head, tail))
    return Edge(head, _relation(relation), tail, _weight_of_json(information), head_pos, tail_pos)


def parse_row(row: dict[str, Any], language: str) -> Edge | None:
    """Parse a row of a table: `head` and `tail` are words or `/c/` URIs, `weight` may be missing."""
    for name in ("head", "relation", "tail"):
        if not isinstance(row[name], str):
            raise MalformedLineError(f"`{name}` is {row[name]!r} instead of a string")
    weight, prefix = _weight(row.get("weight", 1.0)), f"/c/{language}"
    nodes: list[tuple[str, str | None]] = []
    for node in (row["head"], row["tail"]):
        if not node.startswith("/c/"):
            nodes.append((_concept(node), None))
        elif _is_of_language(node, prefix):
            nodes.append(_concept_and_pos(node, prefix))
        else:
            return None
    (head, head_pos), (tail, tail_pos) = nodes
    return Edge(head, _relation(row["relation"]), tail, weight, head_pos, tail_pos)


def _decode(line: bytes) -> str:
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
    return _concept(concept), rest[0] if rest and rest[0] in _PARTS_OF_SPEECH else None


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
    # The bound is far above any real weight. It also rejects infinity, NaN and integers no float can hold.
    if not is_number or not -_MAX_WEIGHT <= value <= _MAX_WEIGHT:
        raise MalformedLineError(f"`weight` is {excerpt(str(value))} instead of a number")
    return float(value)
