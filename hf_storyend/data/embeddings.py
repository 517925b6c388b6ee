"""Pretrained word vectors, as from GloVe, as the initial values of an embedding matrix."""

from __future__ import annotations

import codecs
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, takewhile
from pathlib import Path

import numpy as np
import torch

from .text_files import shorten, stream_lines
from .vocabulary import SPECIAL_TOKENS

WordAndVector = tuple[bytes, list[float]]
NumberedLine = tuple[int, bytes]

_NUMBER_BYTES = b"0123456789+-.eE "
_MAX_FLOAT = torch.finfo(torch.float32).max
_NUM_SAMPLE_LINES = 100
_MAX_BLANK_LINES = 1_000


@dataclass(frozen=True)
class Coverage:
    """Coverage of a vocabulary: words with a vector as they are, words with one in lower case, and missing words."""

    num_exact: int
    num_lower_case: int
    missing: tuple[str, ...]

    @property
    def num_missing(self) -> int:
        """Number of words with a random vector, special tokens included."""
        return len(self.missing)

    @property
    def share_found(self) -> float:
        """Fraction of the vocabulary that has a vector in the file."""
        num_found = self.num_exact + self.num_lower_case
        return num_found / (num_found + self.num_missing)


@dataclass(frozen=True)
class WordVectors:
    """An embedding matrix, [V, E] in float32, and its coverage by the file."""

    matrix: torch.Tensor
    coverage: Coverage

    def describe(self) -> str:
        """Return the coverage in two lines of text."""
        coverage = self.coverage
        num_words = coverage.num_exact + coverage.num_lower_case + coverage.num_missing
        words = [word for word in coverage.missing if word not in SPECIAL_TOKENS]
        examples = f": {', '.join(words[:10])}{' ...' if len(words) > 10 else ''}" if words else ""
        return (
            f"{coverage.share_found:.1%} of {num_words:,} words have a vector of {self.matrix.shape[1]} dimensions "
            f"({coverage.num_exact:,} as they stand, {coverage.num_lower_case:,} in lower case).\n"
            f"Random: {coverage.num_missing - len(words)} special tokens, {len(words):,} words{examples}"
        )


def load_word_vectors(
    path: str | Path, vocabulary: Mapping[str, int], *, dimension: int | None = None, seed: int = 0
) -> WordVectors:
    """
    Load the vectors of a vocabulary from a text file, plain or gzip, with `word v1 ... vE` on each line.

    A word without a vector gets that of its lower-case form. All others, special tokens included, get random vectors
    from a normal distribution with the mean and standard deviation of the found vectors in each dimension. Of
    duplicates, the first is used.

    Args:
        path: File of GloVe, word2vec or fastText. It is streamed and may be larger than the memory.
        vocabulary: Words and their ids; V is the highest id plus 1.
        dimension: Required dimension; by default any.
        seed: Random seed. The random numbers of a word do not depend on which other words are missing.
    """
    if not vocabulary:
        raise ValueError("`vocabulary` is empty: there is no word to find a vector for.")
    found = _FoundVectors(vocabulary)
    file_dimension, vectors = read_vectors(path, found.wanted)
    if dimension not in (None, file_dimension):
        raise ValueError(
            f"`dimension` is {dimension}, but the vectors of {path} have {file_dimension} dimensions. Ask for "
            f"{file_dimension}, or take a file with {dimension}."
        )
    for word, vector in vectors:
        found.add(word, vector)
    if not found.vectors:
        raise ValueError(
            f"{path} has no vector for any of the {len(vocabulary):,} words of `vocabulary`, such as "
            f"{', '.join(map(repr, list(vocabulary)[:8]))}. Is it a file of another language or tokenisation?"
        )
    return WordVectors(_matrix(found.vectors, 1 + max(vocabulary.values()), seed), found.coverage())


class _FoundVectors:
    """Vectors found so far, by id. An exact match takes precedence over one in lower case, in any order."""

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


def find_vectors(path: str | Path, words: Sequence[str]) -> np.ndarray:
    """Return the vectors of words, [words, E]: zero if the file lacks a word, the first if it has several."""
    places = {word.encode(): place for place, word in enumerate(words)}
    dimension, vectors = read_vectors(path, places)
    found = np.zeros((len(words), dimension), dtype=np.float32)
    for word, vector in vectors:
        place = places.pop(word, None)
        if place is not None:
            found[place] = vector
    return found


def read_vectors(path: str | Path, wanted: Container[bytes]) -> tuple[int, Iterator[WordAndVector]]:
    """
    Return the dimension of the vectors in a file, and an iterator over those of the wanted words (in UTF-8).

    Words may contain blanks, and the first line may be a header: the number of vectors and their dimension. The
    numbers of all lines are checked; only those of wanted words are parsed.
    """
    num_announced, dimension, lines = _inspect_start(path, _numbered_lines(path))
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
    num_blank = 0
    for number, line in enumerate(stream_lines(path), start=1):
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        if content := line.rstrip():
            yield number, content
            num_blank = 0
            continue
        num_blank += 1
        if num_blank > _MAX_BLANK_LINES:
            raise ValueError(f"{path}, line {number}: more than {_MAX_BLANK_LINES:,} blank lines: there is no vector.")


def _inspect_start(path: str | Path, lines: Iterator[NumberedLine]) -> tuple[int | None, int, Iterator[NumberedLine]]:
    """Return the number of vectors (if there is a header), their dimension, and the lines that hold them."""
    start = list(islice(lines, _NUM_SAMPLE_LINES))
    if not start:
        raise ValueError(f"{path} is empty: there is no vector in it.")
    header = start[0][1].split()
    # The length is limited because Python refuses to parse integers of thousands of digits.
    is_header = len(header) == 2 and all(field.isdigit() and len(field) < 20 for field in header)
    if is_header and int(header[1]) > 0:
        return int(header[0]), int(header[1]), chain(start[1:], lines)
    counts = Counter(_count_numbers(line) for _, line in start)
    # The most frequent length, ties by the larger one: a broken line has too few numbers.
    dimension = max(counts, key=lambda length: (counts[length], length))
    if dimension == 0:
        number, line = start[0]
        raise ValueError(f"{path}, line {number}: a word and its numbers must be there; got {_excerpt(line)}.")
    return None, dimension, chain(start, lines)


def _count_numbers(line: bytes) -> int:
    """Return how many numbers there are at the end of a line, after its first field."""
    return sum(1 for _ in takewhile(_is_number, reversed(line.split()[1:])))


def _split_line(line: bytes, dimension: int) -> tuple[bytes, bytes]:
    """Return the word and the numbers after it."""
    if line.count(b" ") == dimension:
        word, _, numbers = line.partition(b" ")
    else:
        word, numbers = _split_unusual_line(line, dimension)
    # A quick check of the numbers, of words that are not wanted, too.
    if numbers.translate(None, _NUMBER_BYTES):
        _parse(numbers, dimension)
    return word, numbers


def _split_unusual_line(line: bytes, dimension: int) -> tuple[bytes, bytes]:
    """Split lines with blanks in the word, with tabs, or with too few or too many numbers."""
    # A leading blank means that the word itself is one.
    fields = [b"", *line.split()] if line[:1].isspace() else line.split()
    word, numbers = fields[:-dimension], fields[-dimension:]
    is_too_long = len(word) > 1 and all(b"." in field and _is_number(field) for field in word[1:])
    if not word or is_too_long:
        raise ValueError(
            f"a word and {dimension} numbers must be there; got {len(fields) - 1} numbers, {_excerpt(line)}"
        )
    return b" ".join(word), b" ".join(numbers)


def _parse(numbers: bytes, dimension: int) -> list[float]:
    fields = numbers.split()
    if len(fields) != dimension:
        raise ValueError(f"a word and {dimension} numbers must be there; got {len(fields)} numbers")
    for position, field in enumerate(fields, start=1):
        is_plain = not field.translate(None, _NUMBER_BYTES) and _is_number(field)
        if not is_plain or abs(float(field)) > _MAX_FLOAT:
            raise ValueError(f"number {position} must be a finite number; got {_excerpt(field)}")
    return [float(field) for field in fields]


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _excerpt(content: bytes) -> str:
    return repr(shorten(content.decode("utf-8", "backslashreplace"), 60))
