"""Pretrained word vectors as the first values of an embedding matrix."""

from __future__ import annotations

import codecs
from collections import Counter
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice, takewhile
from pathlib import Path

import torch

from .text_files import stream_lines
from .vocabulary import SPECIAL_WORDS

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


@dataclass(frozen=True)
class Coverage:
    """How many words of a vocabulary a file has vectors for, and the words that it has none for."""

    num_exact: int
    num_lower_case: int
    missing: tuple[str, ...]

    @property
    def num_missing(self) -> int:
        """Words whose vectors were drawn, special symbols among them."""
        return len(self.missing)

    @property
    def share_found(self) -> float:
        """Share of the vocabulary whose vectors are from the file."""
        num_found = self.num_exact + self.num_lower_case
        return num_found / (num_found + self.num_missing)


@dataclass(frozen=True)
class WordVectors:
    """An embedding matrix, [V, E] in float32, and how much of it is from the file."""

    matrix: torch.Tensor
    coverage: Coverage

    def describe(self) -> str:
        """What was found and what was not, in two lines."""
        coverage = self.coverage
        num_words = coverage.num_exact + coverage.num_lower_case + coverage.num_missing
        words = [word for word in coverage.missing if word not in SPECIAL_WORDS]
        examples = f": {', '.join(words[:10])}{' ...' if len(words) > 10 else ''}" if words else ""
        return (
            f"{coverage.share_found:.1%} of {num_words:,} words have a vector of {self.matrix.shape[1]} dimensions "
            f"({coverage.num_exact:,} as they stand, {coverage.num_lower_case:,} in lower case).\n"
            f"Drawn at random: {coverage.num_missing - len(words)} special symbols, {len(words):,} words{examples}"
        )


def load_word_vectors(
    path: str | Path, vocabulary: Mapping[str, int], *, dimension: int | None = None, seed: int = 0
) -> WordVectors:
    """
    Read the vectors of a vocabulary's words from a text file (`word v1 ... vE` a line), plain or gzipped.

    A word that is not there as it stands gets the vector of its lower-case form. The rest, special symbols too, are
    drawn from a normal distribution with the mean and the standard deviation that the found vectors have in each
    dimension. Of a word that is there twice the first vector counts.

    Args:
        path: A file as GloVe, word2vec or fastText write it. It may be larger than the memory.
        vocabulary: Words and their ids; V is the highest id plus 1.
        dimension: The number of dimensions wanted, if not any will do; a file with another one is refused.
        seed: Of the vectors that are drawn. What a word gets does not depend on which others are missing too, but
            for the mean and the deviation.
    """
    if not vocabulary:
        raise ValueError("`vocabulary` is empty: there is no word to find a vector for.")
    rows = _Rows(vocabulary)
    file_dimension, vectors = read_vectors(path, rows.wanted)
    if dimension not in (None, file_dimension):
        raise ValueError(
            f"`dimension` is {dimension}, but the vectors of {path} have {file_dimension} dimensions. Ask for "
            f"{file_dimension}, or take a file with {dimension}."
        )
    for word, vector in vectors:
        rows.add(word, vector)
    if not rows.vectors:
        raise ValueError(
            f"{path} has no vector for any of the {len(vocabulary):,} words of `vocabulary`, such as "
            f"{', '.join(map(repr, list(vocabulary)[:8]))}. Is it a file of another language or tokenisation?"
        )
    return WordVectors(_matrix(rows.vectors, 1 + max(vocabulary.values()), seed), rows.coverage())


class _Rows:
    """The vectors found so far, by id: an exact match beats one in lower case, wherever it stands."""

    def __init__(self, vocabulary: Mapping[str, int]):
        self.vocabulary = vocabulary
        self.vectors: dict[int, list[float]] = {}
        self.exact: set[int] = set()
        self.wanted: dict[bytes, list[tuple[int, bool]]] = {}
        for word, index in vocabulary.items():
            self.wanted.setdefault(word.encode(), []).append((index, True))
            if word != word.lower():
                self.wanted.setdefault(word.lower().encode(), []).append((index, False))

    def add(self, word: bytes, vector: list[float]) -> None:
        for index, is_exact in self.wanted[word]:
            if index in self.exact or (index in self.vectors and not is_exact):
                continue
            self.vectors[index] = vector
            if is_exact:
                self.exact.add(index)

    def coverage(self) -> Coverage:
        missing = sorted((index, word) for word, index in self.vocabulary.items() if index not in self.vectors)
        num_lower_case = len(self.vectors) - len(self.exact)
        return Coverage(len(self.exact), num_lower_case, tuple(word for _, word in missing))


def _matrix(vectors: Mapping[int, list[float]], num_rows: int, seed: int) -> torch.Tensor:
    ids = sorted(vectors)
    found = torch.tensor([vectors[index] for index in ids], dtype=torch.float64)
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(num_rows, found.shape[1], dtype=torch.float64, generator=generator)
    matrix = found.mean(dim=0) + found.std(dim=0, correction=0) * noise
    matrix[ids] = found
    return matrix.float()
