"""How stories are divided into training, validation and test."""

from __future__ import annotations

import pytest
from datasets import Dataset, DatasetDict
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_storyend.data.splits import split_stories


def stories(num_stories: int) -> Dataset:
    return Dataset.from_list([{"context": [f"Story {k}."], "ending": f"End {k}."} for k in range(num_stories)])


def sizes(splits: DatasetDict) -> dict[str, int]:
    return {name: len(split) for name, split in splits.items()}


def endings(splits: DatasetDict) -> dict[str, set[str]]:
    return {name: set(split["ending"]) for name, split in splits.items()}


def test_the_rest_is_halved_and_the_odd_story_is_for_test() -> None:
    assert sizes(split_stories(stories(20), num_train=10)) == {"train": 10, "validation": 5, "test": 5}
    assert sizes(split_stories(stories(21), num_train=10)) == {"train": 10, "validation": 5, "test": 6}


def test_fractions() -> None:
    assert sizes(split_stories(stories(660), fractions=(0.8, 0.1, 0.1))) == {
        "train": 528,
        "validation": 66,
        "test": 66,
    }
    assert sizes(split_stories(stories(3), fractions=(0.4, 0.3, 0.3))) == {"train": 1, "validation": 1, "test": 1}


@given(num_stories=st.integers(3, 40), seed=st.integers(0, 5), data=st.data())
@settings(deadline=None)
def test_every_story_is_in_one_split_and_keeps_its_place(num_stories: int, seed: int, data: st.DataObject) -> None:
    num_train = data.draw(st.integers(1, num_stories - 2))
    splits = split_stories(stories(num_stories), num_train=num_train, seed=seed)
    numbers = [[int(ending[4:-1]) for ending in split["ending"]] for split in splits.values()]
    assert sorted(number for part in numbers for number in part) == list(range(num_stories))
    assert all(part == sorted(part) for part in numbers)
    assert len(numbers[0]) == num_train


@given(order=st.permutations(range(12)))
@settings(deadline=None)
def test_the_order_of_the_file_does_not_matter(order: list[int]) -> None:
    corpus = stories(12)
    assert endings(split_stories(corpus.select(order), num_train=6)) == endings(split_stories(corpus, num_train=6))


def test_the_split_is_the_same_everywhere_and_another_for_another_seed() -> None:
    splits = split_stories(stories(10), num_train=6, seed=0)
    numbers = {name: [int(ending[4:-1]) for ending in split["ending"]] for name, split in splits.items()}
    assert numbers == {"train": [0, 1, 2, 4, 7, 9], "validation": [5, 6], "test": [3, 8]}
    assert endings(split_stories(stories(10), num_train=6, seed=1)) != endings(splits)


def test_training_is_not_simply_the_first_stories() -> None:
    train = split_stories(stories(1_000), num_train=500)["train"]["ending"]
    in_first_half = sum(int(ending[4:-1]) < 500 for ending in train)
    assert 200 < in_first_half < 300


def test_a_single_split_is_divided_and_given_splits_are_kept() -> None:
    one = DatasetDict({"train": stories(8)})
    assert sizes(split_stories(one, num_train=4)) == {"train": 4, "validation": 2, "test": 2}
    given_splits = DatasetDict({"train": stories(3), "test": stories(2)})
    assert split_stories(given_splits) is given_splits


@pytest.mark.parametrize("num_train", [0, -1, 1.5, True])
def test_num_train_must_be_a_positive_number(num_train: int) -> None:
    with pytest.raises(ValueError, match="`num_train` must be a whole number"):
        split_stories(stories(5), num_train=num_train)


def test_a_corpus_that_is_too_small_is_refused_with_advice() -> None:
    with pytest.raises(
        ValueError, match=r"`num_train` is 90,000, but there are 5 stories.*fractions=\(0.8, 0.1, 0.1\)"
    ):
        split_stories(stories(5))
    with pytest.raises(ValueError, match=r"leave a split empty: \(4, 0, 1\)"):
        split_stories(stories(5), fractions=(0.8, 0.05, 0.15))


@pytest.mark.parametrize("fractions", [(0.8, 0.2), (0.8, 0.2, 0.0), (0.5, 0.5, 0.5), (1.2, -0.1, -0.1), ()])
def test_fractions_must_be_three_shares_of_one(fractions: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="`fractions` must be three numbers above 0 that make 1 together"):
        split_stories(stories(50), fractions=fractions)
