"""Stories are split reproducibly, and leakage between splits is found."""

from __future__ import annotations

import re
from typing import Any

import pytest
from datasets import Dataset, DatasetDict
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_storyend.data.splits import LeakReport, find_leaks, split_stories


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


CONTEXT = ["Ida ran.", "She fell.", "It hurt.", "She cried."]
OTHER = ["Bo sang.", "He danced.", "He slept.", "He woke."]


def story(context: list[str], ending: str) -> dict[str, Any]:
    return {"context": context, "ending": ending}


def splits(**rows: list[dict[str, Any]]) -> DatasetDict:
    return DatasetDict({split: Dataset.from_list(stories) for split, stories in rows.items()})


def counts(report: LeakReport) -> dict[tuple[str, str, str], int]:
    return {(overlap.part, *overlap.splits): overlap.num_stories for overlap in report.overlaps}


def test_different_stories_have_nothing_in_common() -> None:
    report = find_leaks(splits(train=[story(CONTEXT, "A.")], test=[story(OTHER, "B.")]))
    assert report.overlaps == [] and report.leaks == []
    assert report.describe() == "No story leaks between splits. (train 1, test 1 stories)"


def test_a_whole_story_counts_in_all_its_parts() -> None:
    report = find_leaks(splits(train=[story(CONTEXT, "A.")], test=[story(OTHER, "B."), story(CONTEXT, "A.")]))
    expected = {(part, "train", "test"): 1 for part in ("whole story", "context", "first three sentences", "ending")}
    assert counts(report) == expected
    assert [overlap.part for overlap in report.leaks] == ["whole story", "context", "first three sentences"]


def test_the_same_context_with_another_ending_is_a_leak() -> None:
    report = find_leaks(splits(train=[story(CONTEXT, "A.")], test=[story(CONTEXT, "B.")]))
    assert counts(report) == {("context", "train", "test"): 1, ("first three sentences", "train", "test"): 1}
    assert len(report.leaks) == 2


def test_the_same_first_three_sentences_are_a_leak() -> None:
    report = find_leaks(splits(train=[story(CONTEXT, "A.")], test=[story([*CONTEXT[:3], "Then?"], "B.")]))
    assert counts(report) == {("first three sentences", "train", "test"): 1}
    assert len(report.leaks) == 1


def test_short_contexts_are_compared_as_a_whole_only() -> None:
    report = find_leaks(splits(train=[story(CONTEXT[:3], "A.")], test=[story(CONTEXT[:3], "B.")]))
    assert counts(report) == {("context", "train", "test"): 1}


def test_the_same_ending_is_told_but_is_no_leak() -> None:
    report = find_leaks(splits(train=[story(CONTEXT, "A.")], test=[story(OTHER, "A!")]))
    assert counts(report) == {("ending", "train", "test"): 1}
    assert report.leaks == []
    assert "No story leaks" in report.describe() and "ending, train and test: 1 story" in report.describe()


def test_a_story_twice_in_one_split_is_told_but_is_no_leak() -> None:
    report = find_leaks(splits(train=[story(CONTEXT, "A."), story(OTHER, "B."), story(CONTEXT, "C.")]))
    assert counts(report) == {("context", "train", "train"): 1, ("first three sentences", "train", "train"): 1}
    assert report.leaks == []
    assert "context, within train: 1 story more than once" in report.describe()


def test_case_marks_and_tokenisation_hide_nothing() -> None:
    written = story(["Zoë's dog didn't eat.", "Why?"], "It was 5:30!")
    tokenised = story(["zoe\u0308's dog did n't EAT .", "why"], "it was 5 :30")
    assert ("whole story", "train", "test") in counts(find_leaks(splits(train=[written], test=[tokenised])))


def test_endings_without_a_letter_are_not_the_same() -> None:
    assert find_leaks(splits(train=[story(CONTEXT, "...")], test=[story(OTHER, "!?")])).overlaps == []


def test_examples_say_where_both_stories_stand() -> None:
    report = find_leaks(
        splits(
            train=[story(OTHER, "B."), story(CONTEXT, "A.")],
            validation=[story(["x"], "y")],
            test=[story(CONTEXT, "C.")],
        )
    )
    (example,) = report.leaks[0].examples
    assert (example.first, example.second) == (("train", 1), ("test", 0))
    assert "train[1] = test[0]: Ida ran. She fell. It hurt. She cried." in report.describe()
    assert report.num_stories == {"train": 2, "validation": 1, "test": 1}


def test_all_are_counted_but_only_the_first_shown() -> None:
    report = find_leaks(splits(train=[story(CONTEXT, "A.")] * 2, test=[story(CONTEXT, "A.")] * 1_200))
    assert counts(report)["whole story", "train", "test"] == 1_200
    assert counts(report)["whole story", "test", "test"] == 1_199
    assert counts(report)["whole story", "train", "train"] == 1
    assert len(report.describe().splitlines()) < 80
    assert "1,200 stories of test also in train" in report.describe()


sentence = st.sampled_from(["A.", "a!", "B.", "C c.", "..."])
corpus = st.lists(st.builds(story, st.lists(sentence, min_size=1, max_size=5), sentence), min_size=1, max_size=6)


def plain(sentences: list[str]) -> str:
    return re.sub("[^a-z]", "", "".join(sentences).lower())


@given(train=corpus, test=corpus)
@settings(deadline=None)
def test_counts_are_those_of_comparing_all_pairs(train: list[dict[str, Any]], test: list[dict[str, Any]]) -> None:
    parts = {
        "whole story": lambda s: plain([*s["context"], s["ending"]]),
        "context": lambda s: plain(s["context"]),
        "first three sentences": lambda s: plain(s["context"][:3]) if len(s["context"]) > 3 else "",
        "ending": lambda s: plain([s["ending"]]),
    }
    expected = {}
    for part, text in parts.items():
        of_train, of_test = [text(s) for s in train], [text(s) for s in test]
        expected[part, "train", "test"] = sum(t != "" and t in of_train for t in of_test)
        expected[part, "train", "train"] = sum(t != "" and t in of_train[:row] for row, t in enumerate(of_train))
        expected[part, "test", "test"] = sum(t != "" and t in of_test[:row] for row, t in enumerate(of_test))
    found = counts(find_leaks(splits(train=train, test=test)))
    assert found == {key: number for key, number in expected.items() if number}
