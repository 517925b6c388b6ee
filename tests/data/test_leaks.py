"""Which stories count as the same, and how it is told."""

from __future__ import annotations

import re
from typing import Any

from datasets import Dataset, DatasetDict
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_storyend.data.splits import LeakReport, find_leaks

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
