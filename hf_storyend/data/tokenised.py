"""Stories as ids: what training reads, cached on disk and small (triples are looked up when a batch is made)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets
import torch
from datasets import Dataset, DatasetDict
from datasets.fingerprint import Hasher

from ..modeling import IncrementalEncoderTokenizer
from ..taking_turns import one_at_a_time
from .story_tables import is_whole

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
    with one_at_a_time(folder / name):
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
