"""The model that a run starts from: new, or with the weights of a trained one."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from inspect import get_annotations
from typing import Any

import torch
from datasets import Dataset

from ..modeling import IncrementalEncoderConfig, IncrementalEncoderForEndingGeneration, IncrementalEncoderTokenizer
from ..systems import find_system, match_tokenizer
from .data import TrainingData
from .options import TrainingOptions

logger = logging.getLogger(__name__)

# Taken from the model to start from, unless the options say otherwise.
_INHERITED = ("hidden_size", "num_layers", "embedding_size", "prediction_vector", "attend_empty_graphs")
# Always those of the options.
_CHOSEN = (
    "dropout",
    "tie_word_embeddings",
    "encoder_loss_weight",
    "encoder_loss_sampling_ratio",
    "num_sampled_classes",
)
# Settings that say nothing of what weights mean.
_MEANINGLESS = ("library_versions", "initializer_range", "recurrence_implementation", "use_cache")
# Weights with one row per token or relation: rows are matched by name, so that vocabularies may differ.
_TOKEN_WEIGHTS = ("encoder.embed_tokens.weight", "lm_head.weight", "lm_head.bias")
_RELATION_WEIGHTS = (
    "encoder.knowledge.embed_relations.weight",
    "encoder.tail_pointer.embed_relations.weight",
)


def build_model(options: TrainingOptions, data: TrainingData) -> IncrementalEncoderForEndingGeneration:
    """
    Build the model to train and adapt the tokenizer of the data to it.

    Weights are random, except for prepared embeddings and what `model_name_or_path` provides.
    """
    prepared = IncrementalEncoderForEndingGeneration.from_pretrained(data.directory)
    trained = None if options.model_name_or_path is None else _load_trained(options.model_name_or_path)
    config = _build_config(options, prepared.config, None if trained is None else trained[0].config)
    torch.manual_seed(options.seed)
    model = IncrementalEncoderForEndingGeneration(config)
    match_tokenizer(data.tokenizer, config)
    embeddings = prepared.get_input_embeddings().weight
    if embeddings.shape == model.get_input_embeddings().weight.shape:
        with torch.no_grad():
            model.get_input_embeddings().weight.copy_(embeddings)
    if options.output_init == "corpus":
        initialise_output(model.lm_head, embeddings, token_counts(data.tokenised["train"], config))
    if trained is not None:
        _log_partial_load(options, *load_partial_weights(model, data.tokenizer, *trained))
    return model


def model_settings(config: IncrementalEncoderConfig) -> dict[str, Any]:
    """Return the settings of a configuration by which the same weights mean the same."""
    own = get_annotations(IncrementalEncoderConfig)
    return {name: getattr(config, name) for name in own if name not in _MEANINGLESS}


def token_counts(stories: Dataset, config: IncrementalEncoderConfig) -> torch.Tensor:
    """
    Count the tokens of contexts and endings, [V]. Words out of the vocabulary count as the unknown word; a token that
    never occurs counts as half a one.
    """
    counts = torch.zeros(config.vocab_size, dtype=torch.float64)
    for name in ("input_ids", "labels"):
        for chunk in stories.with_format("arrow")[name].chunks:
            ids = torch.from_numpy(_flattened(chunk).to_numpy(zero_copy_only=False).astype("int64"))
            ids = ids.where(ids < config.vocab_size, config.unk_token_id)
            counts += torch.bincount(ids, minlength=config.vocab_size)
    # Sentences 2 to K are predicted with their end symbol, too, which `input_ids` leave out.
    counts[config.eos_token_id] += sum(len(story) - 1 for story in stories["input_ids"])
    return counts.clamp(min=0.5)


def _flattened(chunk: Any) -> Any:
    while hasattr(chunk, "flatten") and hasattr(chunk.type, "value_type"):
        chunk = chunk.flatten()
    return chunk


def initialise_output(lm_head: torch.nn.Linear, embeddings: torch.Tensor, counts: torch.Tensor) -> None:
    """
    Start the output projection where little training would bring it: the bias at the log frequency of tokens, and
    the weights at a random projection of the embeddings, so that words with similar vectors start with similar scores.
    """
    with torch.no_grad():
        logs = counts.log()
        lm_head.bias.copy_(logs - logs.mean())
        if len(embeddings) != len(lm_head.weight):
            return
        projected = embeddings @ torch.randn(embeddings.shape[1], lm_head.in_features)
        lm_head.weight.copy_(projected * (lm_head.weight.std() / projected.std()))


def load_partial_weights(
    model: IncrementalEncoderForEndingGeneration,
    tokenizer: IncrementalEncoderTokenizer,
    trained: IncrementalEncoderForEndingGeneration,
    trained_tokenizer: IncrementalEncoderTokenizer,
) -> tuple[list[str], list[str]]:
    """
    Copy the weights of `trained` into `model`; tokens and relations that `trained` lacks keep their rows.

    Returns:
        Names of weights missing in `trained`, and of its weights that `model` does not have.

    Raises:
        ValueError: If a weight has another shape.
    """
    rows = _matching_rows(tokenizer, trained_tokenizer)
    source, target = trained.state_dict(), model.state_dict()
    with torch.no_grad():
        for name in (name for name in target if name in source):
            ours, theirs = rows.get(name, (slice(None), slice(None)))
            values = source[name][theirs]
            if target[name][ours].shape != values.shape:
                raise ValueError(
                    f"The model to start from has `{name}` of shape {list(source[name].shape)}, this one of "
                    f"{list(target[name].shape)}: take its system and sizes, or start from another model."
                )
            target[name][ours] = values.to(target[name].dtype)
    return [name for name in target if name not in source], [name for name in source if name not in target]


def _load_trained(name: str) -> tuple[IncrementalEncoderForEndingGeneration, IncrementalEncoderTokenizer]:
    return (
        IncrementalEncoderForEndingGeneration.from_pretrained(name, dtype=torch.float32),
        IncrementalEncoderTokenizer.from_pretrained(name),
    )


def _build_config(
    options: TrainingOptions, prepared: IncrementalEncoderConfig, trained: IncrementalEncoderConfig | None
) -> IncrementalEncoderConfig:
    inherited = {} if trained is None else {name: getattr(trained, name) for name in _INHERITED}
    overridden = {name: getattr(options, name) for name in _INHERITED if getattr(options, name) is not None}
    settings: dict[str, Any] = {
        **prepared.to_dict(),
        # Not a property of the data: directories prepared with version 0.1 have none.
        "prediction_vector": IncrementalEncoderConfig.prediction_vector,
        **inherited,
        **find_system(options.system).settings,
        **overridden,
        **{name: getattr(options, name) for name in _CHOSEN},
    }
    return IncrementalEncoderConfig(**settings)


def _matching_rows(
    ours: IncrementalEncoderTokenizer, theirs: IncrementalEncoderTokenizer
) -> dict[str, tuple[list[int], list[int]]]:
    """Return, for each weight with rows by name, the rows in our weight and in theirs of the names that both have."""
    tokens = _row_pairs(_by_id(ours.get_vocab()), _by_id(theirs.get_vocab()))
    relations = _row_pairs(ours.knowledge.relations, theirs.knowledge.relations)
    return {**dict.fromkeys(_TOKEN_WEIGHTS, tokens), **dict.fromkeys(_RELATION_WEIGHTS, relations)}


def _by_id(vocabulary: dict[str, int]) -> list[str]:
    return sorted(vocabulary, key=vocabulary.__getitem__)


def _row_pairs(ours: Sequence[str], theirs: Sequence[str]) -> tuple[list[int], list[int]]:
    their_rows = {name: row for row, name in enumerate(theirs)}
    shared = [(row, their_rows[name]) for row, name in enumerate(ours) if name in their_rows]
    return [row for row, _ in shared], [row for _, row in shared]


def _log_partial_load(options: TrainingOptions, missing: list[str], unused: list[str]) -> None:
    source = options.model_name_or_path
    if missing:
        logger.warning("%s has no weights for %s: they are initialised at random.", source, ", ".join(missing))
    if unused:
        logger.warning("%s has %s, which `--system %s` does not use.", source, ", ".join(unused), options.system)
