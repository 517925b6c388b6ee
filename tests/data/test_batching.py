"""Stories are tokenised once; batches are complete, repeatable, and equal work for every process."""

import datasets
import pytest
import torch
from datasets import Dataset, DatasetDict
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_storyend import IncrementalEncoderTokenizer
from hf_storyend.data.batching import LengthGroupedBatchSampler, StoryCollator, padding_ratio, tokenise_stories

ROWS = {
    "context": [["Anna put a cake in the oven.", "They watched a long film."], ["Tom opened the window."]],
    "ending": ["The cake was burnt.", "They saw smoke."],
}


@pytest.fixture
def stories(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    return DatasetDict({"train": Dataset.from_dict(ROWS), "test": Dataset.from_dict(ROWS).select([1])})


def test_tokenised_columns_are_small_and_ragged(stories, tokenizer):
    tokenised = tokenise_stories(stories, tokenizer)
    columns = ["input_ids", "labels", "length", "copy_ids", "copy_labels", "oov_words"]
    assert tokenised["train"].column_names == columns
    row = tokenised["train"][0]
    expected = tokenizer(ROWS["context"][:1], text_target=ROWS["ending"][:1])
    assert row["input_ids"] == expected["input_ids"][0] and row["labels"] == expected["labels"][0]
    assert row["length"] == 8
    assert tokenise_stories(stories, tokenizer, max_length=3)["train"][0]["length"] == 3


def test_tokenised_stories_are_cached(stories, tokenizer, monkeypatch):
    first = tokenise_stories(stories, tokenizer)
    tokenizer.add_triples([("film", "RelatedTo", "cake")])
    with monkeypatch.context() as patch:
        patch.setattr(IncrementalEncoderTokenizer, "__call__", lambda *_, **__: pytest.fail("tokenised again"))
        second = tokenise_stories(stories, tokenizer)
    assert second["train"][:] == first["train"][:]
    tokenizer.add_tokens(["pizza"])
    changed = DatasetDict(train=Dataset.from_dict({"context": [["A pizza."]], "ending": ["Pizza."]}))
    assert tokenise_stories(changed, tokenizer)["train"][0]["labels"][0] == len(tokenizer) - 1


def test_files_of_others_in_the_cache_stay(stories, tokenizer, tmp_path):
    """Whoever shares the cache may have put a link to another directory there."""
    tokenise_stories(stories, tokenizer)
    (folder,) = {path.parent for path in (tmp_path / "cache").rglob("train.arrow")}
    others = [folder / "thesis.tex", folder / "thesis.arrow"]
    for path in (*others, folder / "tmp0a1b2c3d"):
        path.write_text("years of work")
    tokenise_stories(stories, tokenizer)
    assert all(path.read_text() == "years of work" for path in others)
    assert not (folder / "tmp0a1b2c3d").exists()


def test_tokenising_in_several_processes_gives_the_same(stories, tokenizer, tmp_path, monkeypatch):
    alone = tokenise_stories(stories, tokenizer)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "another cache")
    assert tokenise_stories(stories, tokenizer, num_proc=2)["train"][:] == alone["train"][:]


def test_collator(stories, tokenizer):
    tokenised = tokenise_stories(stories, tokenizer)["train"]
    batch = StoryCollator(tokenizer)([tokenised[0], tokenised[1]])
    expected = tokenizer(ROWS["context"], text_target=ROWS["ending"], return_tensors="pt")
    assert batch.keys() == expected.keys()
    assert all(torch.equal(batch[name], expected[name]) for name in batch)


lengths = st.lists(st.integers(1, 60), min_size=1, max_size=300)


@settings(deadline=None)
@given(lengths, st.integers(1, 40), st.booleans(), st.integers(0, 5))
def test_every_story_once_an_epoch(lengths, batch_size, shuffle, epoch):
    sampler = LengthGroupedBatchSampler(lengths, batch_size, shuffle=shuffle)
    sampler.set_epoch(epoch)
    batches = list(sampler)
    assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))
    assert len(batches) == len(sampler)
    assert all(len(batch) <= batch_size for batch in batches)


@settings(deadline=None)
@given(lengths, st.sampled_from([4, 8, 12]), st.sampled_from([2, 4]))
def test_processes_shard_the_batches_of_one(lengths, batch_size, num_processes):
    alone = list(LengthGroupedBatchSampler(lengths, batch_size))
    shards = [
        list(LengthGroupedBatchSampler(lengths, batch_size, num_processes=num_processes, process_index=index))
        for index in range(num_processes)
    ]
    for step, batch in enumerate(alone):
        together = [row for shard in shards for row in shard[step]]
        assert set(together) == set(batch)
        assert len(together) == max(len(batch), num_processes)
        sizes = [len(shard[step]) for shard in shards]
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
    sampler = LengthGroupedBatchSampler(list(range(1, 100)), 8)
    everything = list(sampler)
    sampler.set_epoch(0, num_skipped=5)
    assert list(sampler) == everything[5:] and len(sampler) == len(everything) - 5


def test_length_grouped_batches_pad_less():
    stories = [[[0] * (1 + row % 40)] for row in range(4000)]
    sampler = LengthGroupedBatchSampler([len(story[0]) for story in stories], 64)
    by_length, as_they_come = list(sampler), [list(range(i, i + 64)) for i in range(0, 4000 - 64, 64)]
    assert padding_ratio(stories, by_length) < 0.1 < 0.4 < padding_ratio(stories, as_they_come)
    means = [sum(len(stories[row][0]) for row in batch) / len(batch) for batch in by_length]
    assert means != sorted(means), "short and long batches are mixed"


def test_padding_ratio_by_hand():
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
def test_bad_arguments_of_the_sampler(arguments, message):
    lengths, batch_size, *options = arguments
    with pytest.raises(ValueError, match=message):
        LengthGroupedBatchSampler(lengths, batch_size, **(options[0] if options else {}))
