"""ConceptNet files of any size, and tables, as a stream of edges."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tqdm.auto import tqdm

from .dump_reader import (
    Block,
    BlockParser,
    Edge,
    ReadReport,
    edge_of_row,
    line_blocks,
    parse_lines,
    recognise_format,
    relation_names,
)

if TYPE_CHECKING:
    from datasets import Dataset, IterableDataset


Source: TypeAlias = "str | os.PathLike[str] | Dataset | IterableDataset"

__all__ = ["Edge", "ReadReport", "read_edges"]

_ROWS_AT_ONCE = 10_000


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
    The edges of one source or several, one after the other, in bounded memory.

    A file, plain or gzip, is known by its content: the assertions dump of ConceptNet (five columns with tabs), a
    compact list (`cook /r/AtLocation kitchen`), or relation and two phrases with tabs (`AtLocation`, `hot soup`,
    `kitchen`). Only the first has weights, languages and parts of speech; elsewhere the weight is 1 and the language
    taken for the right one. A `datasets` table has the columns `head`, `relation`, `tail` and, if it likes, `weight`.

    Of a dump's line only what is needed is checked: columns, encoding, how its URIs start, and for an edge of the
    language its concepts and its weight. What fails is counted in the report; without one, it is a warning.

    Args:
        sources: Path, `datasets` table, or a list of them. What is no ConceptNet is refused before anything is read.
        language (`str`, *optional*, defaults to `"en"`): Language of both ends.
        relations (`Iterable[str]`, *optional*): Relations to keep, with or without `/r/`.
        min_weight (`float`, *optional*): Leave out edges of less weight.
        progress (`bool`, *optional*, defaults to `True`): Show a bar, if there is a terminal.
        report (`ReadReport`, *optional*): Is filled as the edges are read.
        block_size (`int`, *optional*): Bytes to work on at a time; it never changes the result.
    """
    if not re.fullmatch(r"[\w-]+", language):
        raise ValueError(f"`language` must be a code as in ConceptNet's URIs, like 'en'; got {language!r}.")
    if block_size < 1:
        raise ValueError(f"`block_size` must be at least 1; got {block_size}.")
    several = sources if isinstance(sources, (list, tuple)) else [sources]
    if not several:
        raise ValueError("`sources` is empty: there is nothing to read edges from.")
    names = relation_names(relations)
    sieve = _Sieve(None if names is None else frozenset(names), min_weight, ReadReport() if report is None else report)
    readers = [_reader(source, language, block_size) for source in several]
    return _read_all(readers, sieve, progress, warn=report is None)


def _read_all(
    readers: Sequence[_FileReader | _TableReader], sieve: _Sieve, progress: bool, warn: bool
) -> Iterator[Edge]:
    for reader in readers:
        yield from reader.edges(sieve, progress)
    if warn and sieve.report.num_malformed:
        warnings.warn(f"Not all lines could be read. {sieve.report.describe()}", stacklevel=2)


@dataclass
class _Sieve:
    """Which edges pass; whatever doesn't is counted."""

    relations: frozenset[str] | None
    min_weight: float | None
    report: ReadReport

    def passing(self, block: Block, name: str, num_lines_before: int) -> list[Edge]:
        report = self.report
        is_open = self.relations is None and self.min_weight is None
        passing = block.edges if is_open else [edge for edge in block.edges if self._passes(edge)]
        report.num_lines += block.num_lines - block.num_blank
        report.num_edges += len(passing)
        report.num_filtered += len(block.edges) - len(passing)
        report.num_other_language += block.num_other_language
        for position, line, error in block.malformed:
            report.add_malformed(name, num_lines_before + position + 1, error, line)
        return passing

    def _passes(self, edge: Edge) -> bool:
        is_wanted = self.relations is None or edge.relation in self.relations
        return is_wanted and (self.min_weight is None or edge.weight >= self.min_weight)


def _reader(source: Source, language: str, block_size: int) -> _FileReader | _TableReader:
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        return _FileReader(path, recognise_format(path, language), block_size)
    return _TableReader(source, language)


@dataclass
class _FileReader:
    path: Path
    read_block: BlockParser
    block_size: int

    def edges(self, sieve: _Sieve, progress: bool) -> Iterator[Edge]:
        size, disable = self.path.stat().st_size, None if progress else True
        with tqdm(total=size, desc=self.path.name, unit="B", unit_scale=True, disable=disable) as bar:
            num_before = 0
            for content in line_blocks(self.path, self.block_size, bar.update):
                block = self.read_block(content)
                yield from sieve.passing(block, self.path.name, num_before)
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

    def edges(self, sieve: _Sieve, progress: bool) -> Iterator[Edge]:
        def parse(row: dict[str, Any]) -> Edge | None:
            return edge_of_row(row, self.language)

        total, disable = getattr(self.table, "num_rows", None), None if progress else True
        with tqdm(total=total, desc="table", unit=" rows", disable=disable) as bar:
            num_before = 0
            for batch in self.table.iter(batch_size=_ROWS_AT_ONCE):
                rows = [dict(zip(batch, values, strict=True)) for values in zip(*batch.values(), strict=True)]
                yield from sieve.passing(parse_lines(parse, list(enumerate(rows)), len(rows)), "table", num_before)
                num_before += len(rows)
                bar.update(len(rows))
