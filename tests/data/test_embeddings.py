"""Word vectors from files, and what the other words get."""

from __future__ import annotations

import gzip
import math
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_storyend.data.embeddings import WordVectors, load_word_vectors

LINES = ["the 0.5 -1 2e-1", "tom 1 2 3", "n't -0.25 0.125 4.0", "other 9 9 9"]


def write(directory: Path, lines: list[str] | bytes, name: str = "vectors.txt") -> Path:
    path = directory / name
    path.write_bytes(lines if isinstance(lines, bytes) else "".join(line + "\n" for line in lines).encode())
    return path


def ids(*words: str) -> dict[str, int]:
    return {word: index for index, word in enumerate(words)}


def problem(path: Path, vocabulary: Mapping[str, int], dimension: int | None = None) -> str:
    with pytest.raises(ValueError) as caught:
        load_word_vectors(path, vocabulary, dimension=dimension)
    return str(caught.value)


def row(vectors: WordVectors, index: int) -> list[float]:
    return vectors.matrix[index].tolist()


def test_words_get_the_numbers_of_their_line(tmp_path: Path) -> None:
    vectors = load_word_vectors(write(tmp_path, LINES), ids("tom", "n't", "the"))
    expected = torch.tensor([[1, 2, 3], [-0.25, 0.125, 4], [0.5, -1, 0.2]])
    assert torch.equal(vectors.matrix, expected)
    assert vectors.matrix.dtype == torch.float32
    assert vectors.coverage.num_exact == 3 and vectors.coverage.missing == ()


@pytest.mark.parametrize("name", ["vectors.txt.gz", "vectors.txt"])
def test_gzip(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, gzip.compress("\n".join(LINES).encode()), name)
    assert row(load_word_vectors(path, ids("tom")), 0) == [1, 2, 3]


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(["4 3", *LINES], id="header"),
        pytest.param([line + " " for line in LINES], id="blank behind"),
        pytest.param([line.replace(" ", "\t") for line in LINES], id="tabs"),
        pytest.param([*LINES, "", "  "], id="blank lines"),
        pytest.param([line + "\r" for line in LINES], id="carriage returns"),
        pytest.param(["\ufeff" + LINES[0], *LINES[1:]], id="byte order mark"),
        pytest.param([". . . 7 7 7", "at name@example.org 8 8 8", *LINES], id="blanks in words"),
        pytest.param([" 7 7 7", "  5 5 5", "\u00a0 8 8 8", "\u0085 6 6 6", *LINES], id="words that are blanks"),
        pytest.param(["12 0.5 0.5 0.5", "nan 1 1 1", *LINES], id="words that are numbers"),
    ],
)
def test_what_files_look_like(tmp_path: Path, lines: list[str]) -> None:
    vectors = load_word_vectors(write(tmp_path, lines), ids("the", "tom", "n't"), dimension=3)
    assert vectors.matrix.tolist() == torch.tensor([[0.5, -1, 0.2], [1, 2, 3], [-0.25, 0.125, 4]]).tolist()


def test_words_that_are_numbers_or_have_blanks_can_be_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path, [". . . 7 8 9", "12 4 5 6", *LINES])
    vectors = load_word_vectors(path, ids("12", ". . ."))
    assert vectors.matrix.tolist() == [[4, 5, 6], [7, 8, 9]]


@given(order=st.permutations(["Tom 4 5 6", "tom 1 2 3", "Rome 7 8 9"]))
@settings(deadline=None)
def test_an_exact_match_wins_wherever_it_stands(order: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = write(tmp_path_factory.mktemp("vectors"), order)
    vectors = load_word_vectors(path, ids("Tom", "tom", "TOM", "rome"))
    assert vectors.matrix[:3].tolist() == [[4, 5, 6], [1, 2, 3], [1, 2, 3]]
    coverage = vectors.coverage
    assert (coverage.num_exact, coverage.num_lower_case, coverage.missing) == (2, 1, ("rome",))
    assert coverage.num_missing == 1 and coverage.share_found == 0.75


def test_of_a_word_that_is_there_twice_the_first_counts(tmp_path: Path) -> None:
    vectors = load_word_vectors(write(tmp_path, ["tom 1 1 1", "tom 2 2 2"]), ids("tom", "Tom"))
    assert vectors.matrix.tolist() == [[1, 1, 1], [1, 1, 1]]


def test_the_rest_is_drawn_from_the_mean_and_spread_of_what_was_found(tmp_path: Path) -> None:
    path = write(tmp_path, ["a 10 0 5", "b 12 0.2 5", "unwanted 1000 1000 1000"])
    vocabulary = ids("<unk>", "a", "b", *(f"missing{k}" for k in range(4_000)))
    matrix = load_word_vectors(path, vocabulary).matrix
    drawn = matrix[[0, *range(3, len(matrix))]]
    assert torch.allclose(drawn.mean(dim=0), torch.tensor([11.0, 0.1, 5.0]), atol=0.06)
    assert torch.allclose(drawn.std(dim=0), torch.tensor([1.0, 0.1, 0.0]), rtol=0.05, atol=1e-6)
    assert len(drawn.unique(dim=0)) == len(drawn)


def test_drawing_is_seeded(tmp_path: Path) -> None:
    path, vocabulary = write(tmp_path, LINES), ids("the", "tom", "unknown")
    first, again = (load_word_vectors(path, vocabulary, seed=3).matrix for _ in range(2))
    assert torch.equal(first, again)
    assert not torch.equal(first[2], load_word_vectors(path, vocabulary, seed=4).matrix[2])


def test_one_found_word_is_enough(tmp_path: Path) -> None:
    matrix = load_word_vectors(write(tmp_path, LINES), ids("tom", "unknown")).matrix
    assert matrix.tolist() == [[1, 2, 3], [1, 2, 3]]


def test_every_id_has_a_row(tmp_path: Path) -> None:
    vectors = load_word_vectors(write(tmp_path, LINES), {"tom": 4, "the": 1})
    assert vectors.matrix.shape == (5, 3) and row(vectors, 4) == [1, 2, 3]
    assert vectors.matrix.isfinite().all()


def test_describe(tmp_path: Path) -> None:
    vectors = load_word_vectors(write(tmp_path, LINES), ids("<unk>", "<pad>", "the", "Tom", "zyx"))
    assert vectors.describe() == (
        "40.0% of 5 words have a vector of 3 dimensions (1 as they stand, 1 in lower case).\n"
        "Random: 2 special tokens, 1 words: zyx"
    )


def test_the_wrong_dimension_says_which_the_file_has(tmp_path: Path) -> None:
    for lines in (LINES, ["4 3", *LINES]):
        path = write(tmp_path, lines)
        message = problem(path, ids("tom"), dimension=200)
        assert message.startswith(f"`dimension` is 200, but the vectors of {path} have 3 dimensions.")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("tom 1 2", "a word and 3 numbers must be there; got 2 numbers, 'tom 1 2'"),
        ("tom", "a word and 3 numbers must be there; got 0 numbers"),
        ("tom  1 2", "a word and 3 numbers must be there; got 2 numbers"),
        ("tom 1.0 2.0 3.0 4.0", "a word and 3 numbers must be there; got 4 numbers"),
        ("tom 1 2x 3", "number 2 must be a finite number; got '2x'"),
        ("tom 1 1.2.3 3", "number 2 must be a finite number; got '1.2.3'"),
        ("tom 1 1_0 3", "number 2 must be a finite number; got '1_0'"),
        ("tom 1 2 nan", "number 3 must be a finite number; got 'nan'"),
        ("tom -inf 2 3", "number 1 must be a finite number; got '-inf'"),
        ("tom 1 2 1e39", "number 3 must be a finite number; got '1e39'"),
        ("unwanted 1 2", "a word and 3 numbers must be there; got 2 numbers"),
        ("unwanted 1 2 nan", "number 3 must be a finite number; got 'nan'"),
        ("unwanted 1 x 3", "number 2 must be a finite number; got 'x'"),
    ],
)
@pytest.mark.parametrize("number", [1, 2, 150])
def test_a_broken_line_is_named(tmp_path: Path, line: str, expected: str, number: int) -> None:
    filler = [f"word{k} 1 2 3" for k in range(200)]
    path = write(tmp_path, [*filler[: number - 1], line, *filler[number - 1 :]])
    assert problem(path, ids("tom", "word0")).startswith(f"{path}, line {number}: {expected}")


def test_a_broken_line_does_not_decide_on_the_dimension(tmp_path: Path) -> None:
    path = write(tmp_path, ["tom 1 2", "the 1 2 3"])
    assert problem(path, ids("tom", "the")).startswith(f"{path}, line 1: a word and 3 numbers must be there")


def test_a_file_that_is_shorter_than_its_header_says(tmp_path: Path) -> None:
    path = write(tmp_path, ["5 3", *LINES])
    assert problem(path, ids("tom")) == f"{path} has 4 vectors, but line 1 promises 5: was the file cut off?"


def test_a_truncated_gzip_file(tmp_path: Path) -> None:
    content = gzip.compress("\n".join(LINES).encode())
    for length in range(len(content)):
        path = write(tmp_path, content[:length], "vectors.txt.gz")
        assert str(path) in problem(path, ids("tom"))


def test_files_without_a_vector_that_is_wanted(tmp_path: Path) -> None:
    path = write(tmp_path, LINES)
    assert problem(path, ids("<unk>", "zyx")).startswith(
        f"{path} has no vector for any of the 2 words of `vocabulary`"
    )
    assert problem(path, {}).startswith("`vocabulary` is empty")
    assert problem(write(tmp_path, []), ids("tom")) == f"{path} is empty: there is no vector in it."
    assert "line 1: a word and its numbers must be there" in problem(write(tmp_path, ["tom", "the"]), ids("tom"))
    assert "can't be opened" in problem(tmp_path / "none.txt", ids("tom"))


numbers = st.lists(st.floats(-100, 100, width=32), min_size=4, max_size=4)
files = st.dictionaries(st.text("abAB.", min_size=1, max_size=3), numbers, min_size=1, max_size=8)


@given(file=files, words=st.lists(st.text("abAB.", min_size=1, max_size=3), unique=True), has_header=st.booleans())
@settings(deadline=None)
def test_found_rows_are_those_of_a_plain_lookup(
    file: dict[str, list[float]], words: list[str], has_header: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    lines = [f"{word} {' '.join(map(repr, vector))}" for word, vector in file.items()]
    path = write(tmp_path_factory.mktemp("vectors"), [f"{len(file)} 4"] * has_header + lines)
    vocabulary = ids(*dict.fromkeys([*words, next(iter(file))]))
    vectors = load_word_vectors(path, vocabulary)
    for word, index in vocabulary.items():
        expected = file.get(word, file.get(word.lower()))
        assert (expected is None) == (word in vectors.coverage.missing)
        assert expected is None or row(vectors, index) == expected
    assert math.isfinite(vectors.matrix.sum())
