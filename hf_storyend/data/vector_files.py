"""Files of word vectors as GloVe, word2vec and fastText write them: a word and its numbers a line."""

from __future__ import annotations

import codecs
from collections import Counter
from collections.abc import Container, Iterator
from itertools import chain, islice, takewhile
from pathlib import Path

import torch

from .text_files import stream_lines

WordAndVector = tuple[bytes, list[float]]
NumberedLine = tuple[int, bytes]

_NUMBER_BYTES = b"0123456789+-.eE "
_MAX_FLOAT = torch.finfo(torch.float32).max
_NUM_LINES_LOOKED_AT = 100


def read_vectors(path: str | Path, wanted: Container[bytes]) -> tuple[int, Iterator[WordAndVector]]:
    """
    The dimension of the vectors in a file, and the vectors of the wanted words (in UTF-8), read as they are asked for.

    A word may have blanks in it, and the first line may be a header with the number of vectors and their dimension.
    In every line the numbers are counted and looked over; only those of wanted words are kept.
    """
    num_announced, dimension, lines = _look_at_start(path, _numbered_lines(path))
    return dimension, _wanted_vectors(path, wanted, dimension, num_announced, lines)


def _wanted_vectors(
    path: str | Path,
    wanted: Container[bytes],
    dimension: int,
    num_announced: int | None,
    lines: Iterator[NumberedLine],
) -> Iterator[WordAndVector]:
    num_vectors = 0
    for number, line in lines:
        num_vectors += 1
        try:
            word, numbers = _split_line(line, dimension)
            vector = _parse(numbers, dimension) if word in wanted else None
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}.") from error
        if vector is not None:
            yield word, vector
    if num_announced not in (None, num_vectors):
        raise ValueError(
            f"{path} has {num_vectors:,} vectors, but line 1 promises {num_announced:,}: was the file cut off?"
        )


def _numbered_lines(path: str | Path) -> Iterator[NumberedLine]:
    for number, line in enumerate(stream_lines(path), start=1):
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        if content := line.rstrip():
            yield number, content


def _look_at_start(path: str | Path, lines: Iterator[NumberedLine]) -> tuple[int | None, int, Iterator[NumberedLine]]:
    """How many vectors there are (if there is a header), their dimension, and the lines that hold them."""
    start = list(islice(lines, _NUM_LINES_LOOKED_AT))
    if not start:
        raise ValueError(f"{path} is empty: there is no vector in it.")
    header = start[0][1].split()
    # Short ones: Python refuses to make a number of thousands of digits.
    is_header = len(header) == 2 and all(field.isdigit() and len(field) < 20 for field in header)
    if is_header and int(header[1]) > 0:
        return int(header[0]), int(header[1]), chain(start[1:], lines)
    counts = Counter(_count_numbers(line) for _, line in start)
    # The commonest, and if there are several the longest: a broken line has fewer numbers than it should.
    dimension = max(counts, key=lambda length: (counts[length], length))
    if dimension == 0:
        number, line = start[0]
        raise ValueError(f"{path}, line {number}: a word and its numbers must be there; got {_shown(line)}.")
    return None, dimension, chain(start, lines)


def _count_numbers(line: bytes) -> int:
    """How many numbers stand at the end of a line, behind its first field."""
    return sum(1 for _ in takewhile(_is_number, reversed(line.split()[1:])))


def _split_line(line: bytes, dimension: int) -> tuple[bytes, bytes]:
    """The word and the numbers behind it."""
    if line.count(b" ") == dimension:
        word, _, numbers = line.partition(b" ")
    else:
        word, numbers = _split_unusual_line(line, dimension)
    # A quick look at the numbers of words that nobody wants, too.
    if numbers.translate(None, _NUMBER_BYTES):
        _parse(numbers, dimension)
    return word, numbers


def _split_unusual_line(line: bytes, dimension: int) -> tuple[bytes, bytes]:
    """The same for words with blanks in them, for tabs, and for lines that are too short or too long."""
    # A blank in front means that the word itself is one.
    fields = [b"", *line.split()] if line[:1].isspace() else line.split()
    word, numbers = fields[:-dimension], fields[-dimension:]
    is_too_long = len(word) > 1 and all(b"." in field and _is_number(field) for field in word[1:])
    if not word or is_too_long:
        raise ValueError(
            f"a word and {dimension} numbers must be there; got {len(fields) - 1} numbers, {_shown(line)}"
        )
    return b" ".join(word), b" ".join(numbers)


def _parse(numbers: bytes, dimension: int) -> list[float]:
    fields = numbers.split()
    if len(fields) != dimension:
        raise ValueError(f"a word and {dimension} numbers must be there; got {len(fields)} numbers")
    for position, field in enumerate(fields, start=1):
        is_plain = not field.translate(None, _NUMBER_BYTES) and _is_number(field)
        if not is_plain or abs(float(field)) > _MAX_FLOAT:
            raise ValueError(f"number {position} must be a finite number; got {_shown(field)}")
    return [float(field) for field in fields]


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _shown(content: bytes) -> str:
    text = content.decode("utf-8", "backslashreplace")
    return repr(text if len(text) <= 60 else text[:57] + "...")
