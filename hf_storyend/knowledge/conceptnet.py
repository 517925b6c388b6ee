"""`read_edges`: ConceptNet files of any size, and tables, as a stream of edges."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tqdm.auto import tqdm

from ..terminal import printable
from .blocks import line_blocks
from .edges import Edge, ReadReport, relation_names
from .formats import BlockParser, ParsedBlock, parse_lines, parse_row, recognise_format

if TYPE_CHECKING:
    from datasets import Dataset, IterableDataset

Source: TypeAlias = "str | os.PathLike[str] | Dataset | IterableDataset"

logger = logging.getLogger(__name__)

_TABLE_BATCH_SIZE = 10_000


def read_edges(
    sources: Source | Sequence[Source],
    *,
    language: str = "en",
    relations: Iterable[str] | None = None,
    min_weight: float | None = None,
    progress: bool = True,
    report: ReadReport | None = None,
    block_size: int = 1 << 20,
) -> Iterator[Edge]:
    """
    Iterate over the edges of one or several sources in bounded memory.

    The format of a file, plain or gzip, is recognised by its content: the assertions dump of ConceptNet (five columns
    separated by tabs), a compact list (`cook /r/AtLocation kitchen`), or relation, head and tail separated by tabs
    (`AtLocation`, `hot soup`, `kitchen`). Only the dump has weights, languages and parts of speech; elsewhere weights
    are 1 and all concepts are of `language`. A `datasets` table has the columns `head`, `relation`, `tail` and,
    optionally, `weight`.

    Lines of the dump are checked as far as they are used: columns, encoding, the start of URIs and, for edges of the
    language, concepts and weight. Malformed lines are counted in the report; without a report, they are logged.

    Args:
        sources: Path, `datasets` table, or a list of them. Unknown formats are refused before anything is read.
        language (`str`, *optional*, defaults to `"en"`): Language of both concepts.
        relations (`Iterable[str]`, *optional*): Relations to keep, with or without `/r/`.
        min_weight (`float`, *optional*): Drop edges with a smaller weight.
        progress (`bool`, *optional*, defaults to `True`): Show a progress bar if there is a terminal.
        report (`ReadReport`, *optional*): Filled while edges are read.
        block_size (`int`, *optional*): Number of bytes to parse at a time; it does not change the result.
    """
    if not re.fullmatch(r"[\w-]+", language):
        raise ValueError(f"`language` must be a code as in ConceptNet's URIs, like 'en'; got {language!r}.")
    if block_size < 1:
        raise ValueError(f"`block_size` must be at least 1; got {block_size}.")
    source_list = sources if isinstance(sources, (list, tuple)) else [sources]
    if not source_list:
        raise ValueError("`sources` is empty: there is nothing to read edges from.")
    names = relation_names(relations)
    counts = ReadReport() if report is None else report
    edge_filter = _EdgeFilter(None if names is None else frozenset(names), min_weight, counts)
    readers = [_reader(source, language, block_size) for source in source_list]
    return _read_all(readers, edge_filter, progress, log_malformed=report is None)


def _reader(source: Source, language: str, block_size: int) -> _FileReader | _TableReader:
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        return _FileReader(path, recognise_format(path, language), block_size)
    return _TableReader(source, language)


def _read_all(
    readers: Sequence[_FileReader | _TableReader], edge_filter: _EdgeFilter, progress: bool, log_malformed: bool
) -> Iterator[Edge]:
    for reader in readers:
        yield from reader.edges(edge_filter, progress)
    if log_malformed and edge_filter.report.num_malformed:
        logger.warning("Not all lines could be read. %s", edge_filter.report.describe())


@dataclass
class _EdgeFilter:
    """Filter by relation and weight that counts what it drops."""

    relations: frozenset[str] | None
    min_weight: float | None
    report: ReadReport

    def apply(self, block: ParsedBlock, name: str, num_lines_before: int) -> list[Edge]:
        """Return the edges of a block to keep, and add its counts to the report."""
        report = self.report
        keeps_all = self.relations is None and self.min_weight is None
        kept = block.edges if keeps_all else [edge for edge in block.edges if self._keeps(edge)]
        report.num_lines += block.num_lines - block.num_blank
        report.num_edges += len(kept)
        report.num_filtered += len(block.edges) - len(kept)
        report.num_other_language += block.num_other_language
        for position, line, error in block.malformed:
            report.add_malformed(name, num_lines_before + position + 1, error, line)
        return kept

    def _keeps(self, edge: Edge) -> bool:
        has_relation = self.relations is None or edge.relation in self.relations
        return has_relation and (self.min_weight is None or edge.weight >= self.min_weight)


@dataclass
class _FileReader:
    path: Path
    parse_block: BlockParser
    block_size: int

    def edges(self, edge_filter: _EdgeFilter, progress: bool) -> Iterator[Edge]:
        size, disable = self.path.stat().st_size, None if progress else True
        with tqdm(total=size, desc=printable(self.path.name), unit="B", unit_scale=True, disable=disable) as bar:
            num_before = 0
            for content in line_blocks(self.path, self.block_size, bar.update):
                block = self.parse_block(content)
                yield from edge_filter.apply(block, self.path.name, num_before)
                num_before += block.num_lines


class _TableReader:
    def __init__(self, table: Any, language: str):
        from datasets import Dataset, IterableDataset

        if not isinstance(table, (Dataset, IterableDataset)):
            raise ValueError(f"`sources` must be paths or `datasets` tables; got {type(table).__name__}.")
        names = table.column_names or []
        missing = [name for name in ("head", "relation", "tail") if name not in names]
        if missing:
            raise ValueError(f"The table has no column {' or '.join(map(repr, missing))}, only {names}.")
        self.table, self.language = table, language

    def edges(self, edge_filter: _EdgeFilter, progress: bool) -> Iterator[Edge]:
        total, disable = getattr(self.table, "num_rows", None), None if progress else True
        with tqdm(total=total, desc="table", unit=" rows", disable=disable) as bar:
            num_before = 0
            for batch in self.table.iter(batch_size=_TABLE_BATCH_SIZE):
                rows = [dict(zip(batch, values, strict=True)) for values in zip(*batch.values(), strict=True)]
                yield from edge_filter.apply(self._parse(rows), "table", num_before)
                num_before += len(rows)
                bar.update(len(rows))

    def _parse(self, rows: list[dict[str, Any]]) -> ParsedBlock:
        return parse_lines(lambda row: parse_row(row, self.language), list(enumerate(rows)), len(rows))
