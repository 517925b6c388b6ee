"""What annotators judged, read back from their sheets; everything that is wrong with these is told at once."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from string import Template
from typing import Any

from markdown_it import MarkdownIt

from ..data.text_files import read_csv
from ..files import atomic_directory
from ..html_page import content_security_policy, script_safe_json
from .sampling import Item, Sample, write_key

SCORES = (0, 1, 2)


@dataclass(frozen=True)
class Metric:
    """A metric: its name in files, the question it puts, and what scores 0, 1 and 2 mean."""

    name: str
    question: str
    meanings: tuple[str, str, str]


@dataclass(frozen=True)
class ErrorType:
    """A kind of error: its name in files, its name on paper, when it fits, and the key that names it on the page."""

    name: str
    title: str
    meaning: str
    key: str


METRICS = (
    Metric(
        "grammar",
        "Is the ending natural, fluent English?",
        ("Broken: can't be understood", "A few mistakes, still understandable", "No mistakes"),
    ),
    Metric(
        "logicality",
        "Does the ending follow from the story?",
        ("Does not fit the story at all", "Related, but something does not fit", "Fits: sensible and coherent"),
    ),
)

ERROR_TYPES = (
    ErrorType("grammar", "Bad grammar", "broken or repeated wording", "g"),
    ErrorType("logicality", "Bad logicality", "wrong person, thing or event", "l"),
    ErrorType("other", "Other", "odd or unknown words, anything else", "o"),
)


ERROR_TYPE = "error_type"
SCORE_COLUMNS = tuple(metric.name for metric in METRICS)
COLUMNS = ("sample", "annotator", "item", "context", "ending", *SCORE_COLUMNS, ERROR_TYPE)

# Spreadsheets run a cell that starts like this; the wide forms count in some locales.
_FORMULA = re.compile("'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")


def safe_cell(text: str) -> str:
    """A text that no spreadsheet takes for a formula: one apostrophe is put in front where there might be one."""
    return f"'{text}" if _FORMULA.match(text) else text


def plain_cell(cell: str) -> str:
    """The text that `safe_cell` was given."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def sheet_name(annotator: int) -> str:
    """What an annotator's sheet is called."""
    return f"sheet_{annotator}.csv"


def write_sheet(
    path: Path, sample: Sample, annotator: int, answers: Mapping[str, Mapping[str, str]] | None = None
) -> None:
    """Write an annotator's sheet: blank, or with `answers`, for each item the text of its columns."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow(COLUMNS)
        for place in sample.order(annotator):
            item = sample.items[place]
            given = (answers or {}).get(item.id, {})
            cells = {**_shown_cells(sample, item), "annotator": str(annotator), **given}
            writer.writerow([safe_cell(cells.get(column, "")) for column in COLUMNS])


def _shown_cells(sample: Sample, item: Item) -> dict[str, str]:
    return {
        "sample": sample.id,
        "item": item.id,
        "context": " ".join(sample.context(item)),
        "ending": item.ending,
    }


_PARTS = Path(__file__).parent


def guidelines() -> str:
    """What annotators are told, as Markdown."""
    return _part("guidelines.md")


def render_page(sample: Sample) -> str:
    """The whole page for a sample; it names no system."""
    style, script = _part("page.css"), _part("page.js")
    return Template(_part("page.html")).substitute(
        policy=content_security_policy(style, script),
        style=style,
        script=script,
        guidelines=MarkdownIt("commonmark").enable("table").render(guidelines()),
        data=script_safe_json(_page_data(sample)),
    )


def _page_data(sample: Sample) -> dict[str, Any]:
    return {
        "sample": sample.id,
        "metrics": [asdict(metric) for metric in METRICS],
        "errors": [asdict(error_type) for error_type in ERROR_TYPES],
        "stories": [story.context for story in sample.stories],
        "items": [{"id": item.id, "story": item.story, "ending": item.ending} for item in sample.items],
        "orders": [sample.order(annotator) for annotator in range(1, sample.num_annotators + 1)],
    }


def _part(name: str) -> str:
    return (_PARTS / name).read_text(encoding="utf-8")


KEY = "key.json"
SHEETS = "sheets"


def write_sample(sample: Sample, output: Path) -> None:
    """
    Write `key.json`, and for annotators `sheets/` with a CSV sheet each, `annotate.html` and `guidelines.md`. A
    directory that holds anything is left alone: scores may be in it.
    """
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise ValueError(f"{output} is there already, maybe with scores in it. Name another output directory.")
    with atomic_directory(output) as folder:
        write_key(sample, folder / KEY)
        sheets = folder / SHEETS
        sheets.mkdir()
        for annotator in range(1, sample.num_annotators + 1):
            write_sheet(sheets / sheet_name(annotator), sample, annotator)
        (sheets / "annotate.html").write_text(render_page(sample), encoding="utf-8")
        (sheets / "guidelines.md").write_text(guidelines(), encoding="utf-8")


_NEEDED = ("sample", "annotator", "item", *SCORE_COLUMNS)
_OPTIONAL = ("context", "ending", ERROR_TYPE)
_ERROR_NAMES = tuple(error_type.name for error_type in ERROR_TYPES)


@dataclass(frozen=True)
class Judgement:
    """One annotator's scores of one ending by metric, and the kind of error, if one was named."""

    scores: dict[str, int]
    error_type: str | None


Judgements = dict[str, list[Judgement]]  # item -> what each annotator judged


@dataclass(frozen=True)
class _Row:
    path: Path
    number: int
    cells: dict[str, str]

    @property
    def place(self) -> str:
        return f"{self.path}: annotator {self.cells['annotator'] or '?'}, row {self.number}"


def read_judgements(sample: Sample, paths: Sequence[Path]) -> Judgements:
    """
    Every annotator's judgement of every item. Missing, double and impossible scores, and rows that are not of this
    sample, are one error that lists them all.
    """
    reader = _SheetReader(sample)
    for path in dict.fromkeys(paths):
        reader.read(path)
    reader.problems += [f"{path}: given twice" for path, times in Counter(paths).items() if times > 1]
    problems = [*reader.problems, *reader.blanks(), *reader.missing()]
    if problems:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        raise ValueError("\n".join([f"{count} in the sheets (row 1 is the header).", *problems]))
    annotators = range(1, sample.num_annotators + 1)
    return {item.id: [reader.found[annotator, item.id][1] for annotator in annotators] for item in sample.items}


class _SheetReader:
    def __init__(self, sample: Sample) -> None:
        self.sample = sample
        self.items = {item.id: item for item in sample.items}
        self.problems: list[str] = []
        self.blank_rows: dict[tuple[Path, int, str], list[int]] = {}
        self.found: dict[tuple[int, str], tuple[str, Judgement]] = {}

    def read(self, path: Path) -> None:
        try:
            for row in _read_rows(path):
                self._take(row)
        except ValueError as error:
            # The rest of this sheet can't be read; those of the others can.
            self.problems.append(str(error))

    def blanks(self) -> Iterator[str]:
        """Cells without a score; rows that follow each other are told together."""
        for (path, annotator, column), numbers in self.blank_rows.items():
            for first, last in _runs(numbers):
                rows = f"row {first}" if first == last else f"rows {first} to {last}"
                yield f"{path}: annotator {annotator}, {rows}, column `{column}`: blank; must be 0, 1 or 2"

    def missing(self) -> Iterator[str]:
        """Endings that an annotator has no row for."""
        for annotator in range(1, self.sample.num_annotators + 1):
            absent = [item.id for item in self.sample.items if (annotator, item.id) not in self.found]
            if len(absent) == len(self.sample.items):
                yield f"annotator {annotator}: there is no row of theirs in any sheet"
                continue
            for item in absent:
                yield f"annotator {annotator}: the row of {item} is missing"

    def _take(self, row: _Row) -> None:
        item, annotator = self.items.get(row.cells["item"]), self._annotator(row)
        problems = list(self._strangers(row, item, annotator))
        if item is None or annotator is None or problems:
            self.problems += problems
            return
        for column in SCORE_COLUMNS:
            if not row.cells[column]:
                self.blank_rows.setdefault((row.path, annotator, column), []).append(row.number)
        scores, error_type, problems = _answers(row)
        self.problems += [*problems, *self._changed_text(row, item)]
        if (annotator, item.id) in self.found:
            other, _ = self.found[annotator, item.id]
            self.problems.append(f"{row.place}, column `item`: {item.id} is there twice, also at {other}")
            return
        self.found[annotator, item.id] = row.place, Judgement(scores, error_type)

    def _annotator(self, row: _Row) -> int | None:
        known = {str(number): number for number in range(1, self.sample.num_annotators + 1)}
        return known.get(row.cells["annotator"])

    def _strangers(self, row: _Row, item: Item | None, annotator: int | None) -> Iterator[str]:
        cells, sample = row.cells, self.sample
        if cells["sample"] != sample.id:
            yield f"{row.place}, column `sample`: {cells['sample']!r} is not the key's, {sample.id!r}"
            return
        if annotator is None:
            allowed = f"from 1 to {sample.num_annotators}"
            yield f"{row.place}, column `annotator`: must be {allowed}; got {cells['annotator']!r}"
        if item is None:
            yield f"{row.place}, column `item`: {cells['item']!r} is not in the key"

    def _changed_text(self, row: _Row, item: Item) -> Iterator[str]:
        """Rows whose cells were sorted apart would give one ending the scores of another."""
        shown = {"context": " ".join(self.sample.context(item)), "ending": item.ending}
        for column, text in shown.items():
            if column in row.cells and " ".join(row.cells[column].split()) != text:
                got = row.cells[column]
                yield f"{row.place}, column `{column}`: not the text of {item.id}: {got!r:.60} for {text!r:.60}"


def _answers(row: _Row) -> tuple[dict[str, int], str | None, list[str]]:
    scores, problems, known = {}, [], {str(score): score for score in SCORES}
    for column in SCORE_COLUMNS:
        text = row.cells[column]
        if text in known:
            scores[column] = known[text]
        elif text:
            problems.append(f"{row.place}, column `{column}`: must be 0, 1 or 2; got {text!r}")
    error_type = row.cells.get(ERROR_TYPE) or None
    if error_type is not None and error_type not in _ERROR_NAMES:
        allowed = f"blank or one of {', '.join(_ERROR_NAMES)}"
        problems.append(f"{row.place}, column `{ERROR_TYPE}`: must be {allowed}; got {error_type!r}")
    return scores, error_type, problems


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """First and last of numbers that follow each other."""
    first = last = numbers[0]
    for number in numbers[1:]:
        if number != last + 1:
            yield first, last
            first = number
        last = number
    yield first, last


def _read_rows(path: Path) -> Iterator[_Row]:
    names, rows = read_csv(path)
    places = _column_places(path, names)
    for number, (_, cells) in enumerate(rows, start=2):
        yield _Row(path, number, {column: plain_cell(cells[place]).strip() for column, place in places.items()})


def _column_places(path: Path, names: list[str]) -> dict[str, int]:
    """Mechanical Turk puts `Input.` before what it was given and `Answer.` before what workers gave."""
    places = {}
    for column in (*_NEEDED, *_OPTIONAL):
        found = [name for name in (f"Answer.{column}", column, f"Input.{column}") if name in names]
        if found:
            places[column] = names.index(found[0])
        elif column in _NEEDED:
            raise ValueError(f"{path}, line 1: column `{column}` is missing; there is {', '.join(map(repr, names))}.")
    return places
