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


def tokenise_stories(
    stories: DatasetDict,
    tokenizer: IncrementalEncoderTokenizer,
    *,
    num_proc: int | None = None,
    max_length: int | None = None,
) -> DatasetDict:
    """
    `context` and `ending` of every split as `input_ids`, `labels` and `length`: the words of the longest sentence,
    which decide how much a batch is padded. Sentences of more than `max_length` words are cut. For the same stories
    and words the result is read from the cache of `datasets`, also by another process.
    """
    return DatasetDict(
        {name: _tokenise_split(rows, name, tokenizer, num_proc, max_length) for name, rows in stories.items()}
    )


@dataclass
class StoryCollator:
    """Makes a batch of tokenised stories: pads them and looks their triples up."""

    tokenizer: IncrementalEncoderTokenizer

    def __call__(self, features: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        rows = [{name: feature[name] for name in ("input_ids", "labels")} for feature in features]
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
    key = Hasher.hash((stories._fingerprint, sorted(words[0].items()), *words[1:], max_length))
    folder = Path(datasets.config.HF_DATASETS_CACHE) / "hf_storyend" / key
    folder.mkdir(parents=True, exist_ok=True)
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
    )
    lengths = [max(map(len, story)) for story in features["input_ids"]]
    return {"input_ids": features["input_ids"], "labels": features["labels"], "length": lengths}
