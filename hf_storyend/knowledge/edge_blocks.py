"""Blocks of lines and the edges on them; and the format of a file, which its first lines show."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .dump_scan import DumpScan
from .edge_lines import (
    BlankLineError,
    DumpLineParser,
    Edge,
    LineParser,
    MalformedLineError,
    parse_compact_line,
    parse_phrase_line,
)
from .line_blocks import line_blocks

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
