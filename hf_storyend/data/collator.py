"""Batches of stories of like length, the same ones however many processes share the work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets
import torch
from datasets import Dataset, DatasetDict
from datasets.fingerprint import Hasher

from ..files import file_lock
from ..modeling import IncrementalEncoderTokenizer
from .story_files import is_whole

# More unknown words than any story has: how many get slots is decided when a batch is made.
_MAX_SLOTS = 10_000


def tokenise_stories(
    stories: DatasetDict,
    tokenizer: IncrementalEncoderTokenizer,
    *,
    num_proc: int | None = None,
    max_length: int | None = None,
) -> DatasetDict:
    """
    `context` and `ending` of every split as `input_ids`, `labels` and `length`: the words of the longest sentence,
    which decide how much a batch is padded. Sentences of more than `max_length` words are cut. `copy_ids` and
    `copy_labels` are the same words for systems that copy, where those that the vocabulary lacks have numbers. For the
    same stories and words the result is read from the cache of `datasets`, also by another process.
    """
    return DatasetDict(
        {name: _tokenise_split(rows, name, tokenizer, num_proc, max_length) for name, rows in stories.items()}
    )


@dataclass
class StoryCollator:
    """
    Makes a batch of tokenised stories: pads them and looks their triples up. With a tokenizer that has copy slots, the
    batch is one for a system that copies.
    """

    tokenizer: IncrementalEncoderTokenizer

    def __call__(self, features: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        columns = {"input_ids": "input_ids", "labels": "labels"}
        if self.tokenizer.num_copy_slots:
            columns = {"input_ids": "input_ids", "copy_ids": "copy_ids", "labels": "copy_labels"}
            missing = [column for column in columns.values() if column not in features[0]]
            if missing:
                raise ValueError(
                    f"The tokenised stories have no `{missing[0]}`, which copying needs: tokenise them again with "
                    "`tokenise_stories`, or prepare them again with `storyend prepare --overwrite`."
                )
        rows = [{name: feature[column] for name, column in columns.items()} for feature in features]
        return dict(self.tokenizer.pad(rows, return_tensors="pt"))


def _tokenise_split(
    stories: Dataset,
    name: str,
    tokenizer: IncrementalEncoderTokenizer,
    num_proc: int | None,
    max_length: int | None,
) -> Dataset:
    # What the ids depend on. The triples are not among them, so that new knowledge needs no new ids.
    words = (tokenizer.get_vocab(), tokenizer.do_lower_case, tokenizer.split_contractions)
    key = Hasher.hash((stories._fingerprint, sorted(words[0].items()), *words[1:], max_length, _MAX_SLOTS))
    folder = Path(datasets.config.HF_DATASETS_CACHE) / "hf_storyend" / key
    folder.mkdir(parents=True, exist_ok=True)
    with file_lock(folder / name):
        for file in folder.glob(f"{name}*.arrow"):
            # A cut file would be taken for fewer stories.
            if not is_whole(file):
                file.unlink()
        return stories.map(
            _read_rows,
            fn_kwargs={"tokenizer": tokenizer, "max_length": max_length},
            batched=True,
            num_proc=num_proc,
            remove_columns=stories.column_names,
            cache_file_name=str(folder / f"{name}.arrow"),
            new_fingerprint=key,
            desc=f"Tokenising {name}",
        )


def _read_rows(
    rows: dict[str, list], tokenizer: IncrementalEncoderTokenizer, max_length: int | None
) -> dict[str, list]:
    features = tokenizer(
        rows["context"],
        text_target=rows["ending"],
        truncation=max_length is not None,
        max_length=max_length,
        return_triples=False,
        num_copy_slots=_MAX_SLOTS,
    )
    num_words, unknown = len(tokenizer), tokenizer.unk_token_id
    return {
        "input_ids": features["input_ids"],
        "labels": [[word if word < num_words else unknown for word in ending] for ending in features["labels"]],
        "length": [max(map(len, story)) for story in features["input_ids"]],
        "copy_ids": features["copy_ids"],
        "copy_labels": features["labels"],
    }


# Stories are sorted by length within pools of so many batches: enough for little padding, few enough to stay random.
_POOL = 50


class LengthBuckets:
    """
    Batch sampler: seeded, by length, and dealt out to processes so that each does the same work.

    An epoch is shuffled, cut into pools, sorted by length inside each pool and cut into batches, which are shuffled
    again. A batch of `batch_size` stories is one step of all processes together: process p takes every
    `num_processes`-th story from place p on, so that neighbours in length, and thus equal work, go to different
    processes, and the stories of a step do not depend on how many processes there are.

    Args:
        lengths (`Sequence[int]`): Length of each story: best that of its longest sentence, which decides the padding.
        batch_size (`int`): Stories in a step, all processes together; a multiple of `num_processes`.
        seed (`int`, *optional*, defaults to 0): Together with the epoch it decides the order.
        shuffle (`bool`, *optional*, defaults to `True`): Without it, stories come by length, always in one order.
        num_processes, process_index (`int`, *optional*): Which share of each batch to give.
    """

    def __init__(
        self,
        lengths: Sequence[int],
        batch_size: int,
        *,
        seed: int = 0,
        shuffle: bool = True,
        num_processes: int = 1,
        process_index: int = 0,
    ):
        if batch_size < 1 or batch_size % num_processes:
            raise ValueError(f"`batch_size` must be a multiple of {num_processes} processes; got {batch_size}.")
        if not 0 <= process_index < num_processes:
            raise ValueError(f"`process_index` must be below `num_processes` ({num_processes}); got {process_index}.")
        if not len(lengths):
            raise ValueError("There is no story to make batches of: `lengths` is empty.")
        self.lengths = torch.as_tensor(lengths)
        self.batch_size = batch_size
        self.seed = seed
        self.shuffle = shuffle
        self.num_processes = num_processes
        self.process_index = process_index
        self.epoch = 0
        self.num_skipped = 0

    def set_epoch(self, epoch: int, num_skipped: int = 0) -> None:
        """The order of this epoch from its batch `num_skipped` on: where an interrupted run goes on."""
        self.epoch, self.num_skipped = epoch, num_skipped

    def __len__(self) -> int:
        return -(-len(self.lengths) // self.batch_size) - self.num_skipped

    def __iter__(self) -> Iterator[list[int]]:
        for batch in self.global_batches()[self.num_skipped :]:
            yield self._share(batch)

    def global_batches(self) -> list[list[int]]:
        """All batches of the epoch, for all processes together; the last one drawn may be smaller."""
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + self.epoch)
        num_stories = len(self.lengths)
        order = torch.randperm(num_stories, generator=generator) if self.shuffle else torch.arange(num_stories)
        pool_size = self.batch_size * (_POOL if self.shuffle else num_stories)
        batches: list[list[int]] = []
        for pool in order.split(pool_size):
            by_length = pool[self.lengths[pool].argsort(stable=True)]
            batches += [batch.tolist() for batch in by_length.split(self.batch_size)]
        if not self.shuffle:
            return batches
        return [batches[row] for row in torch.randperm(len(batches), generator=generator).tolist()]

    def _share(self, batch: list[int]) -> list[int]:
        if len(batch) < self.num_processes:
            # Every process must take the step: stories are given twice rather than none to someone.
            batch = (batch * self.num_processes)[: self.num_processes]
        return batch[self.process_index :: self.num_processes]


def padding_share(stories: Sequence[Sequence[Sequence[int]]], batches: Sequence[Sequence[int]]) -> float:
    """Share of the word places of all batches, padded to [stories, sentences, words], that hold no word."""
    places = words = 0
    for batch in batches:
        rows = [stories[row] for row in batch]
        words += sum(len(sentence) for story in rows for sentence in story)
        longest = max(len(sentence) for story in rows for sentence in story)
        places += len(rows) * max(map(len, rows)) * longest
    return 1 - words / places
