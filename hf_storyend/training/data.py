"""Training data: a directory written by `storyend prepare`, or the stories that come with the package."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import datasets
from accelerate import PartialState
from datasets import Dataset, DatasetDict, concatenate_datasets

from ..data.batching import tokenise_stories
from ..data.options import PrepareOptions
from ..data.prepare import prepare
from ..data.sources import data_sources
from ..data.stories import load_stories
from ..data.story_tables import load_saved_dataset
from ..data.story_words import add_empty_held_out_columns
from ..files import file_digest
from ..modeling import IncrementalEncoderTokenizer
from .options import TrainingOptions

# Sizes that learn something from a few hundred stories in minutes.
_EMBEDDED = PrepareOptions(overwrite=True, hidden_size=192, num_layers=1, embedding_size=96)


@dataclass(frozen=True)
class TrainingData:
    """
    Stories and their tokenizer.

    Attributes:
        directory: The prepared directory; it also holds an untrained model.
        name: Name of the data in model cards.
        tokenizer: The tokenizer.
        stories: Splits as text.
        tokenised: Splits as token ids.
    """

    directory: Path
    name: str
    tokenizer: IncrementalEncoderTokenizer
    stories: DatasetDict
    tokenised: DatasetDict

    @property
    def sources(self) -> dict[str, Any] | None:
        """What the data were made of; None if their directory does not say."""
        return data_sources(self.directory)

    @property
    def validation(self) -> tuple[Dataset, Dataset]:
        """Validation stories as text and as token ids."""
        return self.stories["validation"], self.tokenised["validation"]

    def truncate(self, max_train_samples: int | None) -> TrainingData:
        """Return the same data with only the first training stories."""
        if max_train_samples is None:
            return self
        num_stories = min(max_train_samples, len(self.tokenised["train"]))
        tokenised = DatasetDict({**self.tokenised, "train": self.tokenised["train"].select(range(num_stories))})
        return replace(self, tokenised=tokenised)

    def extend(self, extra_stories: str | None) -> TrainingData:
        """Return the same data with the stories of a file behind the training stories."""
        if extra_stories is None:
            return self
        path = Path(extra_stories).expanduser()
        if not path.is_file():
            raise ValueError(f"`extra_stories`: {path} is not a file.")
        with PartialState().local_main_process_first():
            extra = tokenise_stories(load_stories(path, split="train"), self.tokenizer)["train"]
        train = self.tokenised["train"]
        if "held_out_weights" in train.column_names:
            extra = add_empty_held_out_columns(extra)
        both = concatenate_datasets([train, extra.select_columns(train.column_names).cast(train.features)])
        both._fingerprint = _fingerprint_of(train._fingerprint, file_digest(path))
        return replace(self, tokenised=DatasetDict({**self.tokenised, "train": both}))

    def identity(self) -> dict[str, Any]:
        """Return what distinguishes these training stories from others."""
        return {"fingerprint": self.tokenised["train"]._fingerprint, "num_stories": len(self.tokenised["train"])}

    def digests(self) -> dict[str, str]:
        """Return digests of what a model's weights and its evaluations depend on."""
        names = IncrementalEncoderTokenizer.vocab_files_names
        settings = f"{self.tokenizer.do_lower_case} {self.tokenizer.split_contractions}"
        return {
            "vocabulary": _digest_of_files(self.directory / names["vocab_file"]),
            "knowledge": _digest_of_files(self.directory / names["knowledge_file"]),
            "tokenizer": f"{settings} {_digest_of_files(self.directory / names['word_forms_file'])}",
            "training stories": self._digest_of_stories("tokenised/train"),
            "validation stories": self._digest_of_stories("stories/validation", "tokenised/validation"),
        }

    def _digest_of_stories(self, *folders: str) -> str:
        # Beside them, `datasets` may put files of its own.
        return _digest_of_files(*(path for name in folders for path in (self.directory / name).glob("data-*.arrow")))


def load_training_data(options: TrainingOptions) -> TrainingData:
    """Load `data_dir`, or the stories that come with the package, which are prepared in the cache of `datasets`."""
    directory = Path(options.data_dir).expanduser() if options.data_dir else _prepare_embedded_stories()
    for name in ("config.json", "tokenizer_config.json", "stories", "tokenised"):
        if not (directory / name).exists():
            raise ValueError(f"{directory} has no `{name}`: make it with `storyend prepare --output_dir {directory}`.")
    stories, tokenised = (_load_splits(directory / name) for name in ("stories", "tokenised"))
    for split in ("train", "validation"):
        if split not in tokenised:
            raise ValueError(f"{directory} has no split `{split}`; there is {', '.join(tokenised)}.")
    tokenizer = IncrementalEncoderTokenizer.from_pretrained(directory)
    name = "the stories that come with hf_storyend" if options.data_dir is None else directory.name
    return (
        TrainingData(directory, name, tokenizer, stories, tokenised)
        .truncate(options.max_train_samples)
        .extend(options.extra_stories)
    )


def _digest_of_files(*paths: Path) -> str:
    digests = [file_digest(path) for path in sorted(paths) if path.is_file()]
    return hashlib.sha256("".join(digests).encode()).hexdigest()[:16]


def _fingerprint_of(*parts: str) -> str:
    return hashlib.sha256("".join(parts).encode()).hexdigest()[:16]


def _load_splits(directory: Path) -> DatasetDict:
    splits = load_saved_dataset(directory)
    if not isinstance(splits, DatasetDict):
        raise ValueError(f"{directory} has no splits: make it with `storyend prepare`.")
    return splits


def _prepare_embedded_stories() -> Path:
    directory = Path(datasets.config.HF_DATASETS_CACHE) / "hf_storyend" / "embedded"
    # The processes of one machine share its cache: one of them prepares.
    with PartialState().local_main_process_first():
        prepare(replace(_EMBEDDED, output_dir=str(directory)))
    return directory
