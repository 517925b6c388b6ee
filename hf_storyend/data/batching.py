"""From stories to batches: tokenise, collate, and group by length, alike for any number of processes."""

from __future__ import annotations

import re
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
from .story_tables import is_complete_arrow_file

# More OOV words than any story has. The collator limits them to the copy slots of its tokenizer.
_MAX_COPY_SLOTS = 10_000
# Part of the cache key: other columns are other data.
_COLUMNS = ("input_ids", "labels", "length", "copy_ids", "copy_labels", "oov_words")
# Stories are sorted by length within pools of this many batches: large enough for little padding, small enough to
# stay random.
_POOL_SIZE = 50


def tokenise_stories(
    stories: DatasetDict,
    tokenizer: IncrementalEncoderTokenizer,
    *,
    num_proc: int | None = None,
    max_length: int | None = None,
) -> DatasetDict:
    """
    Tokenise `context` and `ending` of every split.

    The result is cached by `datasets`: for the same stories and vocabulary it is read from there, by other processes,
    too.

    Args:
        stories: Splits with the columns `context` and `ending`.
        tokenizer: Tokenizer to use. Its knowledge table has no influence.
        num_proc: Number of processes.
        max_length: Truncate sentences to this number of tokens.

    Returns:
        `DatasetDict`: The same splits with the columns `input_ids`, `labels`, `length` (tokens of the longest
        sentence, which determine the padding of a batch), `copy_ids` and `copy_labels`: the ids for systems with a
        copy mechanism, in which OOV words have ids of their own, and `oov_words`, those words in that order.
    """
    return DatasetDict(
        {name: _tokenise_split(rows, name, tokenizer, num_proc, max_length) for name, rows in stories.items()}
    )


@dataclass
class StoryCollator:
    """
    Data collator: pads tokenised stories and retrieves their triples.

    If the tokenizer has copy slots, the batch is one for a system with a copy mechanism.
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
        held_out = ("held_out_rows", "held_out_tails", "held_out_weights")
        columns |= {name: name for name in held_out if name in features[0]}
        rows = [{name: feature[column] for name, column in columns.items()} for feature in features]
        if {"oov_words", "copy_ids"} <= features[0].keys():
            for row, feature in zip(rows, features, strict=True):
                row["lookup_ids"] = self.tokenizer.lookup_ids(feature["copy_ids"], feature["oov_words"])
        return dict(self.tokenizer.pad(rows, return_tensors="pt"))


def _tokenise_split(
    stories: Dataset,
    name: str,
    tokenizer: IncrementalEncoderTokenizer,
    num_proc: int | None,
    max_length: int | None,
) -> Dataset:
    # What the ids depend on: not the triples, so that new knowledge needs no new ids.
    vocabulary = sorted(tokenizer.get_vocab().items())
    settings = (tokenizer.do_lower_case, tokenizer.split_contractions, max_length, _MAX_COPY_SLOTS, _COLUMNS)
    key = Hasher.hash((stories._fingerprint, vocabulary, *settings))
    folder = Path(datasets.config.HF_DATASETS_CACHE) / "hf_storyend" / key / name
    folder.mkdir(parents=True, exist_ok=True)
    with file_lock(folder):
        # A killed process leaves files of temporary names; a truncated one would be read as fewer stories.
        written = re.compile(rf"tmp\w+|{re.escape(name)}(_\d+_of_\d+)?\.arrow")
        for file in (path for path in folder.iterdir() if written.fullmatch(path.name) and path.is_file()):
            if file.suffix != ".arrow" or not is_complete_arrow_file(file):
                file.unlink()
        return stories.map(
            _tokenise_rows,
            fn_kwargs={"tokenizer": tokenizer, "max_length": max_length},
            batched=True,
            num_proc=num_proc,
            remove_columns=stories.column_names,
            cache_file_name=str(folder / f"{name}.arrow"),
            new_fingerprint=key,
            desc=f"Tokenising {name}",
        )


def _tokenise_rows(
    rows: dict[str, list], tokenizer: IncrementalEncoderTokenizer, max_length: int | None
) -> dict[str, list]:
    features = tokenizer(
        rows["context"],
        text_target=rows["ending"],
        truncation=max_length is not None,
        max_length=max_length,
        return_triples=False,
        num_copy_slots=_MAX_COPY_SLOTS,
    )
    num_words, unknown = len(tokenizer), tokenizer.unk_token_id
    has_oov = [max(map(max, story)) >= num_words for story in features["copy_ids"]]
    return {
        "input_ids": features["input_ids"],
        "labels": [[word if word < num_words else unknown for word in ending] for ending in features["labels"]],
        "length": [max(map(len, story)) for story in features["input_ids"]],
        "copy_ids": features["copy_ids"],
        "copy_labels": features["labels"],
        "oov_words": [
            tokenizer.oov_words(story) if is_needed else []
            for story, is_needed in zip(rows["context"], has_oov, strict=True)
        ],
    }


class LengthGroupedBatchSampler:
    """
    Length-grouped batch sampler, seeded and sharded over processes.

    The stories of an epoch are shuffled, divided into pools, sorted by length within each pool and divided into
    batches, which are shuffled again. A batch is one step of all processes together: process p takes every
    `num_processes`-th story from position p on. Processes thus get equal work, and the stories of a step do not depend
    on the number of processes.

    Args:
        lengths (`Sequence[int]`): Length of each story: best that of its longest sentence, which decides the padding.
        batch_size (`int`): Stories per step, all processes together; a multiple of `num_processes`.
        seed (`int`, *optional*, defaults to 0): Random seed; together with the epoch it determines the order.
        shuffle (`bool`, *optional*, defaults to `True`): If false, stories are in order of length in every epoch.
        num_processes, process_index (`int`, *optional*): Number of processes, and the one that iterates.
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
        """Select an epoch, and the number of its batches to skip when a run is resumed."""
        self.epoch, self.num_skipped = epoch, num_skipped

    def __len__(self) -> int:
        return -(-len(self.lengths) // self.batch_size) - self.num_skipped

    def __iter__(self) -> Iterator[list[int]]:
        for batch in self.global_batches()[self.num_skipped :]:
            yield self._shard(batch)

    def global_batches(self) -> list[list[int]]:
        """Return all batches of the epoch for all processes together; one of them may be smaller."""
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + self.epoch)
        num_stories = len(self.lengths)
        order = torch.randperm(num_stories, generator=generator) if self.shuffle else torch.arange(num_stories)
        pool_size = self.batch_size * (_POOL_SIZE if self.shuffle else num_stories)
        batches: list[list[int]] = []
        for pool in order.split(pool_size):
            by_length = pool[self.lengths[pool].argsort(stable=True)]
            batches += [batch.tolist() for batch in by_length.split(self.batch_size)]
        if not self.shuffle:
            return batches
        return [batches[row] for row in torch.randperm(len(batches), generator=generator).tolist()]

    def _shard(self, batch: list[int]) -> list[int]:
        if len(batch) < self.num_processes:
            # Every process must take the step, so stories are repeated.
            batch = (batch * self.num_processes)[: self.num_processes]
        return batch[self.process_index :: self.num_processes]


def padding_ratio(stories: Sequence[Sequence[Sequence[int]]], batches: Sequence[Sequence[int]]) -> float:
    """Return the fraction of padding in batches that are padded to [stories, sentences, words]."""
    num_positions = num_words = 0
    for batch in batches:
        rows = [stories[row] for row in batch]
        num_words += sum(len(sentence) for story in rows for sentence in story)
        longest = max(len(sentence) for story in rows for sentence in story)
        num_positions += len(rows) * max(map(len, rows)) * longest
    return 1 - num_words / num_positions
