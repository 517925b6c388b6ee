"""Stories turned into ids once, and found again."""

import datasets
import pytest
import torch
from datasets import Dataset, DatasetDict

from hf_storyend import IncrementalEncoderTokenizer
from hf_storyend.data.batching import StoryCollator, tokenise_stories

ROWS = {
    "context": [["Anna put a cake in the oven.", "They watched a long film."], ["Tom opened the window."]],
    "ending": ["The cake was burnt.", "They saw smoke."],
}


@pytest.fixture
def stories(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    return DatasetDict({"train": Dataset.from_dict(ROWS), "test": Dataset.from_dict(ROWS).select([1])})


def test_columns_are_small_and_ragged(stories, tokenizer):
    tokenised = tokenise_stories(stories, tokenizer)
    assert tokenised["train"].column_names == ["input_ids", "labels", "length", "copy_ids", "copy_labels"]
    row = tokenised["train"][0]
    expected = tokenizer(ROWS["context"][:1], text_target=ROWS["ending"][:1])
    assert row["input_ids"] == expected["input_ids"][0] and row["labels"] == expected["labels"][0]
    assert row["length"] == 8
    assert tokenise_stories(stories, tokenizer, max_length=3)["train"][0]["length"] == 3


def test_the_second_time_nothing_is_read(stories, tokenizer, monkeypatch):
    first = tokenise_stories(stories, tokenizer)
    tokenizer.add_triples([("film", "RelatedTo", "cake")])
    with monkeypatch.context() as patch:
        patch.setattr(IncrementalEncoderTokenizer, "__call__", lambda *_, **__: pytest.fail("tokenised again"))
        second = tokenise_stories(stories, tokenizer)
    assert second["train"][:] == first["train"][:]
    tokenizer.add_tokens(["pizza"])
    changed = DatasetDict(train=Dataset.from_dict({"context": [["A pizza."]], "ending": ["Pizza."]}))
    assert tokenise_stories(changed, tokenizer)["train"][0]["labels"][0] == len(tokenizer) - 1


def test_several_processes_give_the_same(stories, tokenizer, tmp_path, monkeypatch):
    alone = tokenise_stories(stories, tokenizer)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "another cache")
    assert tokenise_stories(stories, tokenizer, num_proc=2)["train"][:] == alone["train"][:]


def test_collator(stories, tokenizer):
    tokenised = tokenise_stories(stories, tokenizer)["train"]
    batch = StoryCollator(tokenizer)([tokenised[0], tokenised[1]])
    expected = tokenizer(ROWS["context"], text_target=ROWS["ending"], return_tensors="pt")
    assert batch.keys() == expected.keys()
    assert all(torch.equal(batch[name], expected[name]) for name in batch)
