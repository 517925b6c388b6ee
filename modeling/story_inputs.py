# Copyright 2026 The hf_storyend authors.
# SPDX-License-Identifier: Apache-2.0
"""
The model's inputs: shapes and values, checked before they can do harm.

A GPU works ahead of the program that drives it, until that asks for a number: then both wait. Whatever of a batch
decides errors and the sizes of tensors is therefore copied to the host once, before anything is computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from transformers.utils import logging

from .configuration_incremental_encoder import IncrementalEncoderConfig
from .losses import PADDING, labelled_steps
from .oov_ids import are_foreign, to_slots
from .tensor_utils import distinct_triples, is_eager_mode, on_host

logger = logging.get_logger(__name__)

# Pairs of a word and a word of the preceding sentence, two attention sources of 4 bytes each: 4 gigabytes.
_MAX_PAIRS = 1 << 29


@dataclass
class StoryInputs:
    """A checked batch of stories, every tensor present."""

    word_ids: torch.Tensor  # [B, K, L]
    word_mask: torch.Tensor  # [B, K, L], true at words
    triple_ids: torch.Tensor  # [B, K, L, N, 3]
    triple_mask: torch.Tensor  # [B, K, L, N], true at triples
    copy_ids: torch.Tensor  # [B, K, L], the words as they can be copied
    triple_weights: torch.Tensor  # [B, K, L, N]
    tail_form_ids: torch.Tensor  # [B, K, L, N, F], words that triples offer, -1 elsewhere
    host: HostInputs
    triples: Any  # `DistinctTriples`; None in systems that read none


@dataclass
class HostInputs:
    """What decides errors and sizes, on the CPU; while tracing, the tensors themselves."""

    word_ids: torch.Tensor  # [B, K, L]
    word_mask: torch.Tensor  # [B, K, L]
    copy_ids: torch.Tensor  # [B, K, L]
    has_triples: torch.Tensor  # [B, K, L]
    num_triples: torch.Tensor  # [B]
    are_valid_triples: torch.Tensor  # []
    ending: Sequence[torch.Tensor | None]  # what came with the story

    @property
    def place_ids(self) -> torch.Tensor:
        """[B, K * L], the words as they can be copied, PADDING elsewhere."""
        return self.copy_ids.masked_fill(~self.word_mask, PADDING).flatten(1)


class HostEnding(NamedTuple):
    """What decides errors and sizes of an ending, on the CPU."""

    labels: torch.Tensor | None  # [B, T]
    decoder_input_ids: torch.Tensor | None  # [B, T]
    decoder_attention_mask: torch.Tensor | None  # [B, T]
    place_ids: torch.Tensor | None  # [B, M], words of the story that can be copied


def prepare_story_inputs(
    config: IncrementalEncoderConfig,
    input_ids: torch.Tensor,
    attention_mask: torch.Tensor | None = None,
    triple_ids: torch.Tensor | None = None,
    triple_mask: torch.Tensor | None = None,
    copy_ids: torch.Tensor | None = None,
    triple_weights: torch.Tensor | None = None,
    tail_form_ids: torch.Tensor | None = None,
    ending: Sequence[torch.Tensor | None] = (),
) -> StoryInputs:
    """
    Fill in what was left out and refuse what can't be right. Two-dimensional `input_ids` are one-sentence stories; a
    missing mask means that all is real; missing triples mean that nothing is known; without `copy_ids` words can be
    copied under their own ids; without `triple_weights` they are 0, and without `tail_form_ids` a triple offers its
    tail as it stands. Tensors of an `ending` are copied to the host with those of the story.
    """
    if input_ids is None:
        raise ValueError("`input_ids` is missing: give the story's words as [stories, sentences, words].")
    _check_is_integer("input_ids", input_ids)
    if input_ids.ndim not in (2, 3):
        raise ValueError(f"`input_ids` must be [stories, sentences, words]; got shape {tuple(input_ids.shape)}.")
    if 0 in input_ids.shape:
        raise ValueError(f"`input_ids` has no words: its shape is {tuple(input_ids.shape)}.")
    if input_ids.ndim == 2:
        logger.warning_once(
            "`input_ids` of shape [stories, words] are read as stories of one sentence. Call the tokenizer with whole "
            "stories to get [stories, sentences, words]."
        )
        input_ids = input_ids.unsqueeze(1)
    word_mask = _word_mask(input_ids, attention_mask)
    if triple_ids is None and (config.knowledge or config.tail_pointer) and is_eager_mode(input_ids):
        logger.warning_once(
            "`triple_ids` is missing: nothing is known of the story's words. Give the model all that the tokenizer "
            "returns, `model(**tokenizer(...))`."
        )
    if triple_ids is None or triple_ids.numel() == 0:
        # Without triples there is nothing that these could describe.
        triple_weights = tail_form_ids = None
    triple_ids, triple_mask = _triples(input_ids, triple_ids, triple_mask)
    # Whatever stands at padding, -100 included, is looked up as a harmless word.
    word_ids = input_ids.long().masked_fill(~word_mask, config.pad_token_id)
    copy_ids = word_ids if copy_ids is None or not config.copy else _copy_ids(config, input_ids, copy_ids)
    weights, forms = _offered_tails(config, triple_ids, triple_weights, tail_form_ids)
    triple_mask = triple_mask & word_mask.unsqueeze(-1)
    _check_sizes(config, triple_mask)
    inputs = complete_story_inputs(
        config, word_ids, word_mask, triple_ids.long(), triple_mask, copy_ids, weights, forms, ending=ending
    )
    if is_eager_mode(input_ids):
        _check_values(config, inputs.host)
        if not inputs.host.are_valid_triples:
            _refuse_triples(config, inputs.triple_ids, inputs.triple_mask, weights, forms)
    return inputs


def refuse_unknown(arguments: Mapping[str, Any]) -> None:
    """Refuse arguments that the model has not, unless they are None."""
    for name, value in arguments.items():
        if value is not None:
            raise TypeError(f"forward() got an unexpected keyword argument '{name}'")


def complete_story_inputs(
    config: IncrementalEncoderConfig,
    word_ids: torch.Tensor,
    word_mask: torch.Tensor,
    triple_ids: torch.Tensor,
    triple_mask: torch.Tensor,
    copy_ids: torch.Tensor,
    triple_weights: torch.Tensor,
    tail_form_ids: torch.Tensor,
    ending: Sequence[torch.Tensor | None] = (),
) -> StoryInputs:
    """Add what the host must know, by one copy, and the distinct triples."""
    tensors = word_ids, word_mask, triple_ids, triple_mask, copy_ids, triple_weights, tail_form_ids
    has_triples, num_triples = triple_mask.any(dim=-1), triple_mask.flatten(1).sum(dim=1)
    triples: Any = None
    are_valid = num_triples >= 0
    if config.knowledge is not None or config.tail_pointer:
        triples = distinct_triples(triple_ids, triple_mask, config.num_relations, config.vocab_size)
        are_valid = _are_valid_triples(config, triple_ids, triple_mask, triple_weights, tail_form_ids)
    count = None if triples is None else triples.count
    count, *seen = on_host(count, word_ids, word_mask, copy_ids, has_triples, num_triples, are_valid.all(), *ending)
    if triples is not None and is_eager_mode(triple_ids):
        triples = triples.first(int(count))
    return StoryInputs(*tensors, HostInputs(*seen[:6], ending=seen[6:]), triples)


def check_target_ids(
    config: IncrementalEncoderConfig, name: str, ids: torch.Tensor, host_ids: torch.Tensor, batch_size: int
) -> None:
    """Check `labels` (where -100 is ignored) or `decoder_input_ids`: [stories, words], not too long, known words."""
    _check_is_integer(name, ids)
    if ids.ndim != 2 or ids.shape[0] != batch_size or ids.shape[1] == 0:
        raise ValueError(f"`{name}` must be [stories, words] for {batch_size} stories; got shape {tuple(ids.shape)}.")
    if name == "labels" and config.max_ending_length is not None and ids.shape[1] > config.max_ending_length:
        raise ValueError(
            f"`labels` has {ids.shape[1]} symbols; `config.max_ending_length` allows {config.max_ending_length}. "
            "Truncate the endings or raise the limit."
        )
    if not is_eager_mode(ids):
        return
    real = host_ids[host_ids != -100] if name == "labels" else host_ids
    what = "`config.vocab_size` and `config.num_copy_slots` together" if config.copy else "`config.vocab_size`"
    _check_range(name, real, config.num_output_words, what)


def decoder_step_mask(
    decoder_input_ids: torch.Tensor, decoder_attention_mask: torch.Tensor | None, labels: torch.Tensor | None
) -> torch.Tensor | None:
    """
    Which steps [B, T] of the decoder are read, if not all: those of the mask, up to the last label of a row. All are
    best on the host.
    """
    step_mask = None if labels is None else labelled_steps(labels)
    if decoder_attention_mask is None:
        return step_mask
    if decoder_attention_mask.shape != decoder_input_ids.shape:
        raise ValueError(
            "`decoder_attention_mask` must have the shape of `decoder_input_ids` "
            f"{tuple(decoder_input_ids.shape)}; got {tuple(decoder_attention_mask.shape)}."
        )
    mask = decoder_attention_mask.to(torch.bool)
    if is_eager_mode(mask) and (~mask[:, :-1] & mask[:, 1:]).any():
        raise ValueError("`decoder_attention_mask` has a word behind padding: pad endings on the right.")
    return mask if step_mask is None else step_mask & mask


def check_prompts(decoder_attention_mask: torch.Tensor | None) -> None:
    """Refuse prompts [rows, T] that end before others: the word behind them would be chosen from no scores at all."""
    if decoder_attention_mask is not None and not decoder_attention_mask[:, -1].all():
        raise ValueError(
            "`decoder_attention_mask` has 0 at the end of a prompt: `generate()` goes on with prompts of one length "
            "only. Give those of each length on their own, without a mask."
        )


def _word_mask(input_ids: torch.Tensor, attention_mask: torch.Tensor | None) -> torch.Tensor:
    if attention_mask is None:
        return torch.ones_like(input_ids, dtype=torch.bool)
    # `generate()` accepts masks of two dimensions only, so there they come with sentences and words run together.
    flat = (input_ids.shape[0], input_ids.shape[1] * input_ids.shape[2])
    if attention_mask.shape not in (input_ids.shape, flat):
        raise ValueError(
            f"`attention_mask` must have the shape of `input_ids` {tuple(input_ids.shape)}; "
            f"got {tuple(attention_mask.shape)}."
        )
    return attention_mask.reshape(input_ids.shape).to(torch.bool)


def _copy_ids(config: IncrementalEncoderConfig, input_ids: torch.Tensor, copy_ids: torch.Tensor) -> torch.Tensor:
    _check_is_integer("copy_ids", copy_ids)
    copy_ids = copy_ids.unsqueeze(1) if copy_ids.ndim == 2 and input_ids.shape[1] == 1 else copy_ids
    if copy_ids.shape != input_ids.shape:
        raise ValueError(
            f"`copy_ids` must have the shape of `input_ids` {tuple(input_ids.shape)}; got {tuple(copy_ids.shape)}."
        )
    return output_columns(config, copy_ids.long())


def output_columns(config: IncrementalEncoderConfig, ids: torch.Tensor) -> torch.Tensor:
    """Columns of the logits for ids of words, those out of the vocabulary included; all else stays as it is."""
    if not config.copy:
        return ids
    slots = to_slots(ids, config.vocab_size, config.num_copy_slots)
    # Ids of no word stay, to be refused.
    return slots.where(~are_foreign(ids, config.vocab_size, config.num_copy_slots), ids)


def _triples(
    input_ids: torch.Tensor, triple_ids: torch.Tensor | None, triple_mask: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor]:
    if triple_ids is None:
        if triple_mask is not None:
            raise ValueError("`triple_mask` was given without `triple_ids`.")
        # One masked triple a word keeps the knowledge weights in the graph: distributed training needs their gradient.
        triple_ids = input_ids.new_zeros(*input_ids.shape, 1, 3)
        return triple_ids, torch.zeros_like(triple_ids[..., 0], dtype=torch.bool)
    _check_is_integer("triple_ids", triple_ids)
    if triple_ids.ndim == 4 and input_ids.shape[1] == 1:
        triple_ids = triple_ids.unsqueeze(1)
        triple_mask = None if triple_mask is None else triple_mask.reshape(triple_ids.shape[:-1])
    if triple_ids.ndim != 5 or triple_ids.shape[:3] != input_ids.shape or triple_ids.shape[-1] != 3:
        raise ValueError(
            "`triple_ids` must be [stories, sentences, words, triples, 3] with the first three as in `input_ids` "
            f"{tuple(input_ids.shape)}; got {tuple(triple_ids.shape)}."
        )
    if triple_ids.shape[3] == 0:
        return _triples(input_ids, None, None)
    if triple_mask is None:
        return triple_ids, torch.ones_like(triple_ids[..., 0], dtype=torch.bool)
    if triple_mask.shape != triple_ids.shape[:-1]:
        raise ValueError(
            f"`triple_mask` must be {tuple(triple_ids.shape[:-1])}, as `triple_ids` without its last dimension; "
            f"got {tuple(triple_mask.shape)}."
        )
    return triple_ids, triple_mask.to(torch.bool)


def _offered_tails(
    config: IncrementalEncoderConfig,
    triple_ids: torch.Tensor,
    triple_weights: torch.Tensor | None,
    tail_form_ids: torch.Tensor | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    shape = triple_ids.shape[:-1]
    if triple_weights is None:
        triple_weights = torch.zeros(shape, device=triple_ids.device)
    if tail_form_ids is None:
        return triple_weights.reshape(shape), triple_ids[..., 2:].long()
    _check_is_integer("tail_form_ids", tail_form_ids)
    if tail_form_ids.numel() == 0 or tail_form_ids.numel() % shape.numel() or triple_weights.numel() != shape.numel():
        raise ValueError(
            f"`triple_weights` must be {tuple(shape)}, as `triple_ids` without its last dimension, and "
            f"`tail_form_ids` have one dimension more; got {tuple(triple_weights.shape)} and "
            f"{tuple(tail_form_ids.shape)}."
        )
    forms = tail_form_ids.long().reshape(*shape, -1)
    return triple_weights.reshape(shape), forms.masked_fill(forms == config.pad_token_id, -1)


def _check_sizes(config: IncrementalEncoderConfig, triple_mask: torch.Tensor) -> None:
    batch_size, num_sentences, num_words, num_triples = triple_mask.shape
    for name, what, size in (
        ("max_sentences", "sentences", num_sentences),
        ("max_sentence_length", "words in a sentence", num_words),
        ("max_triples", "triples at a word", num_triples),
    ):
        limit = getattr(config, name)
        if limit is not None and size > limit:
            raise ValueError(f"The story tensors have room for {size} {what}; `config.{name}` allows {limit}.")
    is_chain = config.story_encoder == "incremental" and num_sentences > 1
    if is_chain and batch_size * num_words * num_words > _MAX_PAIRS:
        raise ValueError(
            f"{batch_size} stories with room for {num_words} words a sentence: that every word attends to all of the "
            "sentence before would take all memory. Cut long sentences (`truncation=True, max_length=...`), or read "
            "fewer stories at a time."
        )


def _check_values(config: IncrementalEncoderConfig, inputs: HostInputs) -> None:
    _check_range("input_ids", inputs.word_ids[inputs.word_mask], config.vocab_size, "`config.vocab_size`")
    empty = ~inputs.word_mask.flatten(1).any(dim=1)
    if empty.any():
        raise ValueError(f"Story {int(empty.nonzero()[0]) + 1} of the batch is empty: its `attention_mask` is zero.")
    if (~inputs.word_mask[..., :-1] & inputs.word_mask[..., 1:]).any():
        raise ValueError("`attention_mask` has a word behind padding: pad sentences on the right.")
    if config.copy:
        _check_copy_ids(config, inputs.word_ids[inputs.word_mask], inputs.copy_ids[inputs.word_mask])


def _are_valid_triples(
    config: IncrementalEncoderConfig,
    triple_ids: torch.Tensor,
    triple_mask: torch.Tensor,
    triple_weights: torch.Tensor,
    tail_form_ids: torch.Tensor,
) -> torch.Tensor:
    """Where `_refuse_triples` would find nothing [B, K, L, N], as a tensor: nobody waits for it yet."""
    heads, relations, tails = triple_ids.unbind(-1)
    wrong = (triple_ids < 0).any(dim=-1) | (heads >= config.vocab_size) | (tails >= config.vocab_size)
    wrong |= relations >= config.num_relations
    if config.tail_pointer:
        wrong |= ((tail_form_ids < -1) | (tail_form_ids >= config.vocab_size)).any(dim=-1)
        wrong |= ~triple_weights.isfinite()
    return ~(wrong & triple_mask)


def _refuse_triples(
    config: IncrementalEncoderConfig,
    triple_ids: torch.Tensor,
    triple_mask: torch.Tensor,
    triple_weights: torch.Tensor,
    tail_form_ids: torch.Tensor,
) -> None:
    """Say which of the triples is wrong."""
    heads, relations, tails = triple_ids[triple_mask].unbind(-1)
    _check_range("triple_ids[..., 0] (head)", heads, config.vocab_size, "`config.vocab_size`")
    _check_range("triple_ids[..., 1] (relation)", relations, config.num_relations, "`config.num_relations`")
    _check_range("triple_ids[..., 2] (tail)", tails, config.vocab_size, "`config.vocab_size`")
    if config.tail_pointer:
        forms = tail_form_ids[triple_mask]
        _check_range("tail_form_ids", forms[forms != -1], config.vocab_size, "`config.vocab_size`")
        if not triple_weights[triple_mask].isfinite().all():
            raise ValueError("`triple_weights` holds a number that is not finite.")


def _check_copy_ids(config: IncrementalEncoderConfig, words: torch.Tensor, copies: torch.Tensor) -> None:
    what = "`config.vocab_size` and `config.num_copy_slots` together"
    _check_range("copy_ids", copies, config.num_output_words, what)
    wrong = (copies != words) & (copies < config.vocab_size)
    if wrong.any():
        raise ValueError(
            f"`copy_ids` holds {int(copies[wrong][0])} for the word {int(words[wrong][0])}: a word is copied under "
            f"its own id or a slot from `config.vocab_size` ({config.vocab_size}) on. If the tokenizer has fewer "
            "words than that, give the model as many rows: `resize_token_embeddings(len(tokenizer))`."
        )


def _check_range(name: str, ids: torch.Tensor, limit: int, limit_name: str) -> None:
    wrong = ids[(ids < 0) | (ids >= limit)]
    if wrong.numel():
        raise ValueError(f"`{name}` holds {int(wrong[0])}, which does not exist: {limit_name} is {limit}.")


def _check_is_integer(name: str, ids: torch.Tensor) -> None:
    if not isinstance(ids, torch.Tensor):
        raise ValueError(f"`{name}` must be a tensor of whole numbers; got {type(ids).__name__}.")
    if ids.is_floating_point() or ids.is_complex() or ids.dtype == torch.bool:
        raise ValueError(f"`{name}` must hold whole numbers; got {ids.dtype}.")
