"""Text files: UTF-8 text, JSON Lines and CSV, plain or gzip, with errors that name the file and the line."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from tqdm.auto import tqdm

from ..terminal import printable

_GZIP_MARK = b"\x1f\x8b"
_ZIP_MARK = b"PK\x03\x04"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_LINE_END = re.compile(r"\r\n|\r|\n")
_LINES_PER_PROGRESS_STEP = 1_000
_MAX_LINE_LENGTH = 1 << 20
# Text compresses to about a tenth; files that expand far more are made to fill the memory.
_MAX_EXPANSION = 100
_MAX_UNPACKED = 1 << 26

_JSON_LINE = 'every line must be one whole object, {"context": ["...", "..."], "ending": "..."}'

# Number of the line that a row starts on, and its cells.
Row = tuple[int, list[str]]


def read_text(path: str | Path) -> str:
    """Return the text of a UTF-8 file without a byte order mark; other encodings are an error."""
    with _open_bytes(path) as (stream, raw):
        content = stream.read() if stream is raw else _decompress(path, stream)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # `error.object` lacks the byte order mark, if there was one.
        offset = error.start + len(content) - len(error.object)
        raise ValueError(_encoding_problem(path, content, offset, error.reason)) from error
    if "\0" in text:
        raise ValueError(_encoding_problem(path, content, content.index(b"\0"), "a zero byte"))
    return text


def split_lines(text: str) -> list[str]:
    """Return the lines of a text, with the line ends of any system; trailing blank lines are dropped."""
    lines = _LINE_END.split(text)
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def shorten(text: str, max_length: int) -> str:
    """Return a text cut to `max_length` characters, for messages."""
    return text if len(text) <= max_length else text[: max_length - 3] + "..."


@contextmanager
def at_line(path: str | Path, line: int) -> Iterator[None]:
    """Prefix errors with a file and a line number."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path}, line {line}: {error}.") from error


def stream_lines(path: str | Path, has_progress: bool = True) -> Iterator[bytes]:
    """Iterate over the lines of a file of any size, with a progress bar if there is a terminal and it is wanted."""
    path = Path(path)
    with (
        _open_bytes(path) as (stream, raw),
        tqdm(
            total=path.stat().st_size,
            desc=printable(path.name),
            unit="B",
            unit_scale=True,
            disable=None if has_progress else True,
        ) as bar,
    ):
        limit, num_bytes = _max_unpacked(path), 0
        for number, line in enumerate(iter(partial(stream.readline, _MAX_LINE_LENGTH + 1), b"")):
            if len(line) > _MAX_LINE_LENGTH:
                raise ValueError(f"{path}, line {number + 1}: longer than {_MAX_LINE_LENGTH:,} bytes.")
            num_bytes += len(line)
            if num_bytes > limit:
                raise ValueError(_expansion_problem(path, limit))
            if number % _LINES_PER_PROGRESS_STEP == 0:
                bar.update(raw.tell() - bar.n)
            yield line
        bar.update(raw.tell() - bar.n)


@contextmanager
def _open_bytes(path: str | Path) -> Iterator[tuple[BinaryIO | io.BufferedReader, BinaryIO]]:
    """Yield the decompressed stream and the file below it, whose position shows the progress."""
    with _open(path) as raw:
        start = raw.read(4)
        raw.seek(0)
        if start == _ZIP_MARK:
            raise ValueError(f"{path} is a zip archive: unpack it and name the file that was inside.")
        if not start.startswith(_GZIP_MARK):
            if Path(path).suffix == ".gz":
                raise ValueError(f"{path} is not a gzip file, though its name says so: it starts with {start!r}.")
            yield raw, raw
            return
        try:
            yield io.BufferedReader(gzip.GzipFile(fileobj=raw), 1 << 20), raw
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{path} is a truncated or damaged gzip file: {error}. Download it again.") from error


def _decompress(path: str | Path, stream: BinaryIO | io.BufferedReader) -> bytes:
    """Return the decompressed content; a decompression bomb is an error."""
    limit = _max_unpacked(path)
    content = stream.read(limit + 1)
    if len(content) > limit:
        raise ValueError(_expansion_problem(path, limit))
    return content


def _max_unpacked(path: str | Path) -> int:
    return max(_MAX_UNPACKED, _MAX_EXPANSION * Path(path).stat().st_size)


def _expansion_problem(path: str | Path, limit: int) -> str:
    return (
        f"{path} unpacks to more than {limit:,} bytes, over {_MAX_EXPANSION} times its size: that is no text. "
        "If it is, unpack it first: gunzip."
    )


def _open(path: str | Path) -> BinaryIO:
    try:
        return open(path, "rb")
    except OSError as error:
        raise ValueError(f"{path} can't be opened: {error.strerror}.") from error


def _encoding_problem(path: str | Path, content: bytes, offset: int, reason: str) -> str:
    line = 1 + content.count(b"\n", 0, offset)
    place = f"{path}, line {line} (byte {offset}): not UTF-8 text ({reason})"
    if reason == "unexpected end of data":
        return f"{place}: the file was cut off inside a character. Download it again."
    if content.startswith(_UTF16_MARKS) or content.count(b"\0") > len(content) // 4:
        return f"{place}: it looks like UTF-16. Convert it: iconv -f UTF-16 -t UTF-8."
    if b"\0" in content or not content.decode("utf-8", "ignore").isascii():
        return f"{place}, though other parts of the file are: it is damaged. Download it again."
    return f"{place}: it looks like Latin-1 or Windows-1252. Convert it: iconv -f WINDOWS-1252 -t UTF-8."


def read_json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Iterate over the objects of a JSON Lines file and their line numbers, from 1; their keys are not checked."""
    for number, line in enumerate(split_lines(read_text(path)), start=1):
        yield number, _json_object(path, number, line)


def required(record: dict[str, Any], key: str) -> Any:
    """Return the value of a key; raise if the key is missing."""
    if key not in record:
        raise ValueError(f"key `{key}` is missing; there is {', '.join(map(repr, record)) or 'none'}")
    return record[key]


def _json_object(path: Path, number: int, line: str) -> dict[str, Any]:
    if not line.strip():
        raise ValueError(f"{path}, line {number}: a blank line among the stories; {_JSON_LINE}.")
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}, line {number}, column {error.colno}: {error.msg}; {_JSON_LINE}.") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}, line {number}: {error}; {_JSON_LINE}.") from error
    if not isinstance(record, dict):
        raise ValueError(f"{path}, line {number}: a JSON {type(record).__name__}; {_JSON_LINE}.")
    return record


def read_csv(path: str | Path) -> tuple[list[str], Iterator[Row]]:
    """Return the column names of a CSV file, and its rows with the lines they start on; all must have all columns."""
    rows = _without_blank_lines(path, _numbered_rows(path))
    line, header = next(rows, (0, []))
    if not header:
        raise ValueError(f"{path} is empty: there is not even a header.")
    names = [name.strip() for name in header]
    repeated = sorted(name for name, times in Counter(names).items() if times > 1)
    if repeated:
        raise ValueError(f"{path}, line {line}: column `{repeated[0]}` is there twice.")
    return names, _full_rows(path, names, rows)


def _numbered_rows(path: str | Path) -> Iterator[Row]:
    # Line ends are left as they are: inside quotes they belong to the text.
    reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise ValueError(
                f"{path}, line {line}: the row that starts here is not valid CSV ({error}); "
                'is a quotation mark missing, or not doubled ("")?'
            ) from error
        yield line, row


def _without_blank_lines(path: str | Path, rows: Iterator[Row]) -> Iterator[Row]:
    blank_line = 0
    for line, row in rows:
        if len(row) <= 1 and not "".join(row).strip():
            blank_line = blank_line or line
            continue
        if blank_line:
            raise ValueError(f"{path}, line {blank_line}: a blank line among the rows. Take it out.")
        yield line, row


def _full_rows(path: str | Path, names: list[str], rows: Iterator[Row]) -> Iterator[Row]:
    for line, row in rows:
        if len(row) < len(names):
            raise ValueError(
                f"{path}, line {line}: the row has {len(row)} columns, the header {len(names)}: "
                f"column `{names[len(row)]}` is missing. Was the file cut off?"
            )
        if len(row) > len(names):
            raise ValueError(
                f"{path}, line {line}: the row has {len(row)} columns, the header {len(names)}: there is text behind "
                f"column `{names[-1]}`. Does a sentence with a comma lack its quotation marks?"
            )
        yield line, row
