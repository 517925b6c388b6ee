"""What a run trains on and starts from: prepared data, or the stories that come with the package."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import datasets
import torch
from accelerate import PartialState
from datasets import Dataset, DatasetDict
from transformers.utils import logging

from ..data.story_files import load_saved_dataset
from ..modeling import IncrementalEncoderConfig, IncrementalEncoderForEndingGeneration, IncrementalEncoderTokenizer
from ..preparation import PreparationOptions, prepare
from ..systems import find_system, match_tokenizer
from .options import TrainingOptions

# Weights with a row for each word or relation: rows go by name, so that the two may know different ones.
_WORD_ROWS = ("encoder.embed_tokens.weight", "lm_head.weight", "lm_head.bias")
_RELATION_ROWS = ("encoder.knowledge.embed_relations.weight",)


def start_from(
    model: IncrementalEncoderForEndingGeneration,
    tokenizer: IncrementalEncoderTokenizer,
    trained: IncrementalEncoderForEndingGeneration,
    trained_tokenizer: IncrementalEncoderTokenizer,
) -> tuple[list[str], list[str]]:
    """
    Copy the weights of `trained` into `model`; words and relations that it does not know keep what they have. Returns
    the names of the weights that it has none for, such as those of a copy mechanism, and of those of its own that
    `model` has no place for. Sizes must agree.
    """
    rows = dict.fromkeys(_WORD_ROWS, _row_pairs(_by_id(tokenizer.get_vocab()), _by_id(trained_tokenizer.get_vocab())))
    relations = (tokenizer.knowledge.relations, trained_tokenizer.knowledge.relations)
    rows.update(dict.fromkeys(_RELATION_ROWS, _row_pairs(*relations)))
    learnt, new = trained.state_dict(), []
    with torch.no_grad():
        for name, weight in model.state_dict().items():
            if name not in learnt:
                new.append(name)
                continue
            ours, theirs = rows.get(name, (slice(None), slice(None)))
            source = learnt[name][theirs]
            if weight[ours].shape != source.shape:
                raise ValueError(
                    f"The model to start from has `{name}` of shape {list(learnt[name].shape)}, this one of "
                    f"{list(weight.shape)}: take its system and sizes, or start from another model."
                )
            weight[ours] = source.to(weight.dtype)
    return new, [name for name in learnt if name not in model.state_dict()]


def _by_id(vocabulary: dict[str, int]) -> list[str]:
    return sorted(vocabulary, key=vocabulary.__getitem__)


def _row_pairs(ours: Sequence[str], theirs: Sequence[str]) -> tuple[list[int], list[int]]:
    """The rows of names that both have, in ours and in theirs."""
    places = {name: row for row, name in enumerate(theirs)}
    shared = [(row, places[name]) for row, name in enumerate(ours) if name in places]
    return [row for row, _ in shared], [row for _, row in shared]


logger = logging.get_logger(__name__)

# Sizes that learn something from a few hundred stories in minutes.
_EMBEDDED = PreparationOptions(hidden_size=192, num_layers=1, embedding_size=96)


@dataclass(frozen=True)
class TrainingData:
    """Stories as text and as ids, for training and for validation, with their tokenizer and a model to start from."""

    directory: Path
    name: str
    tokenizer: IncrementalEncoderTokenizer
    stories: DatasetDict
    tokenised: DatasetDict

    def limited(self, max_train_samples: int | None) -> TrainingData:
        """The same data with the first training stories only."""
        if max_train_samples is None:
            return self
        num_stories = min(max_train_samples, len(self.tokenised["train"]))
        tokenised = DatasetDict({**self.tokenised, "train": self.tokenised["train"].select(range(num_stories))})
        return replace(self, tokenised=tokenised)

    @property
    def validation(self) -> tuple[Dataset, Dataset]:
        """Validation stories as text and as ids."""
        return self.stories["validation"], self.tokenised["validation"]

    def identity(self) -> dict[str, Any]:
        """What tells these data from others."""
        return {"fingerprint": self.tokenised["train"]._fingerprint, "num_stories": len(self.tokenised["train"])}


def load_training_data(options: TrainingOptions) -> TrainingData:
    """The prepared directory of the options, or the embedded stories, prepared in the cache of `datasets`."""
    directory = Path(options.prepared).expanduser() if options.prepared else _embedded_directory()
    for name in ("config.json", "tokenizer_config.json", "stories", "tokenised"):
        if not (directory / name).exists():
            raise ValueError(f"{directory} has no `{name}`: make it with `storyend prepare --output {directory}`.")
    stories, tokenised = (_load_splits(directory / name) for name in ("stories", "tokenised"))
    for split in ("train", "validation"):
        if split not in tokenised:
            raise ValueError(f"{directory} has no split `{split}`; there is {', '.join(tokenised)}.")
    tokenizer = IncrementalEncoderTokenizer.from_pretrained(directory)
    name = "the stories that come with hf_storyend" if options.prepared is None else directory.name
    return TrainingData(directory, name, tokenizer, stories, tokenised).limited(options.max_train_samples)


def _load_splits(directory: Path) -> DatasetDict:
    splits = load_saved_dataset(directory)
    if not isinstance(splits, DatasetDict):
        raise ValueError(f"{directory} has no splits: make it with `storyend prepare`.")
    return splits


def build_model(options: TrainingOptions, data: TrainingData) -> IncrementalEncoderForEndingGeneration:
    """
    A model of the chosen system and size that has learnt nothing yet but the prepared word vectors or, if the options
    name a model to start from, what that one has learnt. The tokenizer of the data is made to fit it.
    """
    prepared = IncrementalEncoderForEndingGeneration.from_pretrained(data.directory)
    trained = None if options.model_name_or_path is None else _load_trained(options.model_name_or_path)
    inherited = ("hidden_size", "num_layers", "embedding_size", "attend_empty_graphs")
    chosen = {name: getattr(options, name) for name in inherited if getattr(options, name) is not None}
    settings = {
        **prepared.config.to_dict(),
        **({} if trained is None else {name: getattr(trained[0].config, name) for name in inherited}),
        **find_system(options.system).settings,
        **chosen,
        "dropout": options.dropout,
        "tie_word_embeddings": options.tie_word_embeddings,
        "encoder_loss_weight": options.encoder_loss_weight,
        "encoder_loss_share": options.encoder_loss_share,
        "num_negatives": options.num_negatives,
    }
    config = IncrementalEncoderConfig(**settings)
    torch.manual_seed(options.seed)
    model = IncrementalEncoderForEndingGeneration(config)
    match_tokenizer(data.tokenizer, config)
    vectors = prepared.get_input_embeddings().weight
    if vectors.shape == model.get_input_embeddings().weight.shape:
        with torch.no_grad():
            model.get_input_embeddings().weight.copy_(vectors)
    if trained is not None:
        new, unused = start_from(model, data.tokenizer, *trained)
        if new:
            logger.warning("%s has no weights for %s: they start new.", options.model_name_or_path, ", ".join(new))
        if unused:
            logger.warning(
                "%s has %s, which `--system %s` has no place for: they are left out.",
                *(options.model_name_or_path, ", ".join(unused), options.system),
            )
    return model


def _load_trained(name: str) -> tuple[IncrementalEncoderForEndingGeneration, IncrementalEncoderTokenizer]:
    return (
        IncrementalEncoderForEndingGeneration.from_pretrained(name, dtype=torch.float32),
        IncrementalEncoderTokenizer.from_pretrained(name),
    )


def _embedded_directory() -> Path:
    directory = Path(datasets.config.HF_DATASETS_CACHE) / "hf_storyend" / "embedded"
    # The processes of one machine share its cache: one of them makes it.
    with PartialState().local_main_process_first():
        prepare(_EMBEDDED, directory, overwrite=True)
    return directory
