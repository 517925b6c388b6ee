"""Pretrained word vectors as the first values of an embedding matrix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from .vector_files import read_vectors
from .vocabulary import SPECIAL_WORDS


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
