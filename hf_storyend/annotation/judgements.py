"""Annotators' scores, read back from their sheets. All problems of all sheets are reported at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..data.text_files import read_csv
from .rubric import ERROR_TYPES, SCORES
from .sampling import Item, Sample
from .sheets import ERROR_TYPE, SCORE_COLUMNS, unescape_formula

_REQUIRED = ("sample", "annotator", "item", *SCORE_COLUMNS)
_OPTIONAL = ("context", "ending", ERROR_TYPE)
_ERROR_NAMES = tuple(error_type.name for error_type in ERROR_TYPES)


@dataclass(frozen=True)
class Judgement:
    """One annotator's scores of one ending by metric, and the type of error, if one was named."""

    scores: dict[str, int]
    error_type: str | None


# Item id: the judgement of each annotator.
Judgements = dict[str, list[Judgement]]


def read_judgements(sample: Sample, paths: Sequence[Path]) -> Judgements:
    """
    Read every annotator's judgement of every item.

    Missing, duplicate and invalid scores, and rows of other samples, are a `ValueError` that lists them all.

    Args:
        sample: The sample that the sheets belong to.
        paths: Sheets of all annotators, in any order.
    """
    reader = _SheetReader(sample)
    for path in dict.fromkeys(paths):
        reader.read(path)
    reader.problems += [f"{path}: given twice" for path, times in Counter(paths).items() if times > 1]
    problems = [*reader.problems, *reader.blank_cells(), *reader.missing_rows()]
    if problems:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        raise ValueError("\n".join([f"{count} in the sheets (row 1 is the header).", *problems]))
    annotators = range(1, sample.num_annotators + 1)
    return {item.id: [reader.judgements[annotator, item.id][1] for annotator in annotators] for item in sample.items}


@dataclass(frozen=True)
class _Row:
    path: Path
    number: int
    cells: dict[str, str]

    @property
    def location(self) -> str:
        return f"{self.path}: annotator {self.cells['annotator'] or '?'}, row {self.number}"


def _read_rows(path: Path) -> Iterator[_Row]:
    header, rows = read_csv(path)
    indices = _column_indices(path, header)
    for number, (_, cells) in enumerate(rows, start=2):
        yield _Row(path, number, {name: unescape_formula(cells[index]).strip() for name, index in indices.items()})


def _column_indices(path: Path, header: list[str]) -> dict[str, int]:
    """Find the columns; Mechanical Turk prefixes `Input.` to those of the sheet and `Answer.` to those of workers."""
    indices = {}
    for column in (*_REQUIRED, *_OPTIONAL):
        found = [name for name in (f"Answer.{column}", column, f"Input.{column}") if name in header]
        if found:
            indices[column] = header.index(found[0])
        elif column in _REQUIRED:
            raise ValueError(f"{path}, line 1: column `{column}` is missing; there is {', '.join(map(repr, header))}.")
    return indices


class _SheetReader:
    """Collects judgements, each with its location, and problems."""

    def __init__(self, sample: Sample) -> None:
        self.sample = sample
        self.items = {item.id: item for item in sample.items}
        self.problems: list[str] = []
        self.blank_rows: dict[tuple[Path, int, str], list[int]] = {}
        self.judgements: dict[tuple[int, str], tuple[str, Judgement]] = {}

    def read(self, path: Path) -> None:
        try:
            for row in _read_rows(path):
                self._add(row)
        except ValueError as error:
            # The rest of this sheet is unreadable; the other sheets are not.
            self.problems.append(str(error))

    def blank_cells(self) -> Iterator[str]:
        """Report cells without a score; consecutive rows together."""
        for (path, annotator, column), numbers in self.blank_rows.items():
            for first, last in _ranges(numbers):
                rows = f"row {first}" if first == last else f"rows {first} to {last}"
                yield f"{path}: annotator {annotator}, {rows}, column `{column}`: blank; must be 0, 1 or 2"

    def missing_rows(self) -> Iterator[str]:
        """Report endings that an annotator has no row for."""
        for annotator in range(1, self.sample.num_annotators + 1):
            missing = [item.id for item in self.sample.items if (annotator, item.id) not in self.judgements]
            if len(missing) == len(self.sample.items):
                yield f"annotator {annotator}: there is no row of theirs in any sheet"
                continue
            for item in missing:
                yield f"annotator {annotator}: the row of {item} is missing"

    def _add(self, row: _Row) -> None:
        item, annotator = self.items.get(row.cells["item"]), self._annotator(row)
        problems = list(self._check_ids(row, item, annotator))
        if item is None or annotator is None or problems:
            self.problems += problems
            return
        for column in SCORE_COLUMNS:
            if not row.cells[column]:
                self.blank_rows.setdefault((row.path, annotator, column), []).append(row.number)
        judgement, problems = _parse_judgement(row)
        self.problems += [*problems, *self._check_text(row, item)]
        if (annotator, item.id) in self.judgements:
            other, _ = self.judgements[annotator, item.id]
            self.problems.append(f"{row.location}, column `item`: {item.id} is there twice, also at {other}")
            return
        self.judgements[annotator, item.id] = row.location, judgement

    def _annotator(self, row: _Row) -> int | None:
        known = {str(number): number for number in range(1, self.sample.num_annotators + 1)}
        return known.get(row.cells["annotator"])

    def _check_ids(self, row: _Row, item: Item | None, annotator: int | None) -> Iterator[str]:
        cells, sample = row.cells, self.sample
        if cells["sample"] != sample.id:
            yield f"{row.location}, column `sample`: {cells['sample']!r} is not the key's, {sample.id!r}"
            return
        if annotator is None:
            allowed = f"from 1 to {sample.num_annotators}"
            yield f"{row.location}, column `annotator`: must be {allowed}; got {cells['annotator']!r}"
        if item is None:
            yield f"{row.location}, column `item`: {cells['item']!r} is not in the key"

    def _check_text(self, row: _Row, item: Item) -> Iterator[str]:
        """Columns that were sorted apart would give an ending the scores of another."""
        expected = {"context": " ".join(self.sample.context(item)), "ending": item.ending}
        for column, text in expected.items():
            if column in row.cells and " ".join(row.cells[column].split()) != text:
                got = row.cells[column]
                yield f"{row.location}, column `{column}`: not the text of {item.id}: {got!r:.60} for {text!r:.60}"


def _parse_judgement(row: _Row) -> tuple[Judgement, list[str]]:
    scores, problems, known = {}, [], {str(score): score for score in SCORES}
    for column in SCORE_COLUMNS:
        text = row.cells[column]
        if text in known:
            scores[column] = known[text]
        elif text:
            problems.append(f"{row.location}, column `{column}`: must be 0, 1 or 2; got {text!r}")
    error_type = row.cells.get(ERROR_TYPE) or None
    if error_type is not None and error_type not in _ERROR_NAMES:
        allowed = f"blank or one of {', '.join(_ERROR_NAMES)}"
        problems.append(f"{row.location}, column `{ERROR_TYPE}`: must be {allowed}; got {error_type!r}")
    return Judgement(scores, error_type), problems


def _ranges(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last of consecutive numbers."""
    first = last = numbers[0]
    for number in numbers[1:]:
        if number != last + 1:
            yield first, last
            first = number
        last = number
    yield first, last
