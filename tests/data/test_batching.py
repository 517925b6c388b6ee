"""Batches by length: complete, repeatable, and the same work for every process."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_storyend.data.batching import LengthGroupedBatchSampler, padding_ratio

lengths = st.lists(st.integers(1, 60), min_size=1, max_size=300)


@given(lengths, st.integers(1, 40), st.booleans(), st.integers(0, 5))
def test_every_story_once_an_epoch(lengths, batch_size, shuffle, epoch):
    buckets = LengthGroupedBatchSampler(lengths, batch_size, shuffle=shuffle)
    buckets.set_epoch(epoch)
    batches = list(buckets)
    assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))
    assert len(batches) == len(buckets)
    assert all(len(batch) <= batch_size for batch in batches)


@given(lengths, st.sampled_from([4, 8, 12]), st.sampled_from([2, 4]))
def test_processes_share_the_batches_of_one(lengths, batch_size, num_processes):
    alone = list(LengthGroupedBatchSampler(lengths, batch_size))
    shares = [
        list(LengthGroupedBatchSampler(lengths, batch_size, num_processes=num_processes, process_index=index))
        for index in range(num_processes)
    ]
    for step, batch in enumerate(alone):
        together = [row for share in shares for row in share[step]]
        assert set(together) == set(batch)
        assert len(together) == max(len(batch), num_processes)
        sizes = [len(share[step]) for share in shares]
        assert min(sizes) >= 1 and max(sizes) - min(sizes) <= 1


def test_epochs_and_seeds_differ_and_repeat():
    lengths = list(range(1, 500))
    first, again, other = (
        LengthGroupedBatchSampler(lengths, 16),
        LengthGroupedBatchSampler(lengths, 16),
        LengthGroupedBatchSampler(lengths, 16, seed=1),
    )
    assert list(first) == list(again)
    assert list(first) != list(other)
    again.set_epoch(1)
    assert list(first) != list(again)


def test_an_epoch_can_be_entered_in_the_middle():
    buckets = LengthGroupedBatchSampler(list(range(1, 100)), 8)
    everything = list(buckets)
    buckets.set_epoch(0, num_skipped=5)
    assert list(buckets) == everything[5:] and len(buckets) == len(everything) - 5


def test_buckets_pad_less():
    stories = [[[0] * (1 + row % 40)] for row in range(4000)]
    buckets = LengthGroupedBatchSampler([len(story[0]) for story in stories], 64)
    by_length, as_they_come = list(buckets), [list(range(i, i + 64)) for i in range(0, 4000 - 64, 64)]
    assert padding_ratio(stories, by_length) < 0.1 < 0.4 < padding_ratio(stories, as_they_come)
    means = [sum(len(stories[row][0]) for row in batch) / len(batch) for batch in by_length]
    assert means != sorted(means), "short and long batches are mixed"


def test_padding_share_by_hand():
    assert padding_ratio([[[1, 2]], [[1], [1]]], [[0, 1]]) == pytest.approx(1 - 4 / 8)
    assert padding_ratio([[[1, 2]], [[1], [1]]], [[0], [1]]) == 0


@pytest.mark.parametrize(
    "arguments, message",
    [
        (([1], 0), "`batch_size`"),
        (([], 4), "`lengths` is empty"),
        (([1], 3, {"num_processes": 2}), "multiple of 2"),
        (([1], 4, {"num_processes": 2, "process_index": 2}), "`process_index`"),
    ],
)
def test_bad_arguments(arguments, message):
    lengths, batch_size, *options = arguments
    with pytest.raises(ValueError, match=message):
        LengthGroupedBatchSampler(lengths, batch_size, **(options[0] if options else {}))
