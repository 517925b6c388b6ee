"""Which lines of a block of the assertions dump have to be parsed: few, found without looking at each in Python."""

from __future__ import annotations

import contextlib
import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np
import pyarrow

from ..modeling.knowledge_table import relation_name

_MAX_EXAMPLES = 5
_MAX_EXCERPT = 80


@dataclass
class ReadReport:
    """
    Counts of the lines that are not blank: `num_lines` is the sum of the other four. An edge is of another language
    if one of its ends is (web addresses among them), and filtered by its relation or its weight.
    """

    num_lines: int = 0
    num_edges: int = 0
    num_other_language: int = 0
    num_filtered: int = 0
    num_malformed: int = 0
    examples: list[str] = field(default_factory=list)

    def add_malformed(self, name: str, line_number: int, reason: object, line: object) -> None:
        """Count a line that could not be read; the first few are kept with file and line number."""
        self.num_malformed += 1
        if len(self.examples) < _MAX_EXAMPLES:
            text = line.decode("utf-8", "backslashreplace") if isinstance(line, bytes) else str(line)
            shown = text if len(text) <= _MAX_EXCERPT else text[:_MAX_EXCERPT] + "..."
            self.examples.append(f"{name}, line {line_number}: {reason}: {shown!r}")

    def describe(self) -> str:
        """A line of counts, and below it the first malformed lines."""
        lines = [
            f"{self.num_lines:,} lines: {self.num_edges:,} edges, {self.num_other_language:,} of other languages, "
            f"{self.num_filtered:,} filtered, {self.num_malformed:,} malformed"
        ]
        lines += [f"  {example}" for example in self.examples]
        if self.num_malformed > len(self.examples):
            lines.append(f"  and {self.num_malformed - len(self.examples):,} more")
        return "\n".join(lines)


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


def _gzip_library() -> tuple[Any, Any]:
    """What opens a gzip file, and the error of damaged data."""
    try:
        # Three times as fast as the standard library, which takes longer to decompress a dump than we to scan it.
        from isal import igzip, isal_zlib
    except ImportError:
        return gzip.GzipFile, zlib.error
    return igzip.IGzipFile, isal_zlib.error


_GzipFile, _DeflateError = _gzip_library()
_GZIP_MAGIC = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def line_blocks(path: Path, block_size: int, advance: Callable[[int], object] | None = None) -> Iterator[bytes]:
    """
    Blocks of whole lines that end in a line feed, a Windows line end made one. `advance` is told how many bytes of
    the file have been read since it was last called. Of a line above the limit no more than the start is kept.
    """
    parts = _blocks_as_read(path, block_size, advance or (lambda num_bytes: None))
    for index, block in enumerate(_whole_lines(parts)):
        lines = block.replace(b"\r\n", b"\n") if b"\r" in block else block
        yield lines if index else lines.removeprefix(_BYTE_ORDER_MARK)


def _whole_lines(parts: Iterator[bytes]) -> Iterator[bytes]:
    partial = bytearray()
    for part in parts:
        end = part.rfind(b"\n") + 1
        if end:
            yield b"".join((partial, memoryview(part)[:end]))
            partial = bytearray(part[end:])
        else:
            partial += part
            del partial[MAX_LINE_LENGTH + 1 :]
    if partial:
        yield bytes(partial) + b"\n"


def _blocks_as_read(path: Path, block_size: int, advance: Callable[[int], object]) -> Iterator[bytes]:
    with path.open("rb") as raw:
        is_compressed = raw.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
        raw.seek(0)
        file = cast(BinaryIO, _GzipFile(fileobj=raw)) if is_compressed else raw
        position = 0
        try:
            while block := file.read(block_size):
                position, previous = raw.tell(), position
                advance(position - previous)
                yield block
        except (EOFError, gzip.BadGzipFile, _DeflateError) as error:
            raise ValueError(f"{path} is a damaged or truncated gzip file: {error}. Get it anew.") from error


_SAMPLE_SIZE = 1 << 16


@dataclass
class Block:
    """What stood on the lines of a block; malformed ones with their position, from 0."""

    num_lines: int
    edges: list[Edge] = field(default_factory=list)
    num_other_language: int = 0
    num_blank: int = 0
    malformed: list[tuple[int, Any, MalformedLineError]] = field(default_factory=list)


BlockParser = Callable[[bytes], Block]


def parse_lines(parse: Callable[[Any], Edge | None], lines: Sequence[tuple[int, Any]], num_lines: int) -> Block:
    """Parse the lines at these positions; the others among the `num_lines` are of another language."""
    block = Block(num_lines, num_other_language=num_lines - len(lines))
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


def recognise_format(path: Path, language: str) -> BlockParser:
    """What parses the blocks of a file, by the first line that is well-formed in some format."""
    dump_parser = DumpLineParser(language)
    formats: list[tuple[LineParser, BlockParser]] = [
        (dump_parser, lambda block: _parse_dump(dump_parser, block)),
        (parse_compact_line, lambda block: _parse_all(parse_compact_line, block)),
        (parse_phrase_line, lambda block: _parse_all(parse_phrase_line, block)),
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


def _parse_all(parse: LineParser, block: bytes) -> Block:
    lines = block.removesuffix(b"\n").split(b"\n")
    return parse_lines(parse, list(enumerate(lines)), len(lines))


def _parse_dump(parser: DumpLineParser, block: bytes) -> Block:
    scan = DumpScan(block, parser.prefix)
    lines = scan.lines_to_parse()
    edges = parser.parse_usual([line for _, line in lines]) if scan.is_sound else None
    if edges is None:
        return parse_lines(parser, lines, scan.num_lines)
    return Block(scan.num_lines, edges, scan.num_lines - len(lines))


_TAB, _LINE_FEED = ord("\t"), ord("\n")
_NUM_COLUMNS = 5


class DumpScan:
    """
    The lines of a block, and those of them to be parsed: the edges of the language, and all that is out of the
    ordinary. What remains is known to be sound and of another language.
    """

    def __init__(self, block: bytes, prefix: str):
        self._block = block
        self._codes = np.frombuffer(block, dtype=np.uint8)
        # All tabs and line feeds, and with them the control characters that have no business here.
        self._marks = np.flatnonzero(self._codes <= _LINE_FEED)
        self._mark_codes = self._codes[self._marks]
        self._last_marks = np.flatnonzero(self._mark_codes == _LINE_FEED)
        self._ends = self._marks[self._last_marks]
        self._starts = np.concatenate(([0], self._ends[:-1] + 1))
        # Whether it is UTF-8 and every line has its five columns.
        self.is_sound = False
        self._to_parse = self._find_lines_to_parse(prefix.encode())
        self.num_lines = len(self._ends)

    def lines_to_parse(self) -> list[tuple[int, bytes]]:
        """Positions in the block, from 0, and lines without their end."""
        rows = self._to_parse
        spans = zip(rows.tolist(), self._starts[rows].tolist(), self._ends[rows].tolist(), strict=True)
        return [(row, self._block[start:end]) for row, start, end in spans]

    def _find_lines_to_parse(self, prefix: bytes) -> np.ndarray:
        to_parse = np.ones(len(self._ends), dtype=bool)
        regular = np.flatnonzero(self._have_five_columns())
        if len(regular) and _is_utf8(self._block):
            self.is_sound = len(regular) == len(to_parse)
            tabs = [self._marks[self._last_marks[regular] - back] for back in range(_NUM_COLUMNS - 1, 0, -1)]
            columns = [self._starts[regular], *(tab + 1 for tab in tabs)]
            to_parse[regular] = self._are_wanted_or_odd(columns, self._ends[regular], prefix)
        return np.flatnonzero(to_parse)

    def _have_five_columns(self) -> np.ndarray:
        regular = np.diff(self._last_marks, prepend=-1) == _NUM_COLUMNS
        regular &= self._ends - self._starts <= MAX_LINE_LENGTH
        strange = np.flatnonzero((self._mark_codes != _TAB) & (self._mark_codes != _LINE_FEED))
        regular[np.searchsorted(self._last_marks, strange)] = False
        return regular

    def _are_wanted_or_odd(self, columns: list[np.ndarray], ends: np.ndarray, prefix: bytes) -> np.ndarray:
        assertion, relation, head, tail = (self._words_at(column) for column in columns[:4])
        sound = _begin_with(assertion, b"/a/") & _begin_with(relation, b"/r/")
        sound &= (self._codes[columns[4]] == ord("{")) & (self._codes[ends - 1] == ord("}"))
        for node in (head, tail):
            sound &= _begin_with(node, b"/c/") | _begin_with(node, b"htt")
        wanted = _begin_with(head, prefix[:4]) & _begin_with(tail, prefix[:4])
        for column in columns[2:4]:
            rows = np.flatnonzero(wanted)
            wanted[rows] = _begin_with(self._words_at(column[rows] + 4), prefix[4:8])
        return wanted | ~sound

    def _words_at(self, positions: np.ndarray) -> np.ndarray:
        """The four bytes at each position, as one number."""
        words = np.ndarray((len(self._block) - 3,), dtype="<u4", buffer=self._block, strides=(1,))
        # At the end of the block an earlier word is read: with a tab or line feed in it, it is no text we look for.
        return words[np.minimum(positions, len(words) - 1)]


def _begin_with(words: np.ndarray, text: bytes) -> np.ndarray:
    mask = np.uint32((1 << 8 * len(text)) - 1)
    return words & mask == int.from_bytes(text, "little")


def _is_utf8(block: bytes) -> bool:
    # Three times as fast as decoding, which would also write the text down.
    offsets = pyarrow.py_buffer(np.array([0, len(block)], dtype=np.int64))
    text = pyarrow.Array.from_buffers(pyarrow.large_string(), 1, [None, offsets, pyarrow.py_buffer(block)])
    try:
        text.validate(full=True)
    except pyarrow.ArrowInvalid:
        return False
    return True
