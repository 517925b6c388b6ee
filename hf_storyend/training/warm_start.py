"""Starting from a trained model: its weights go where the new model has a place for them."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ..modeling import IncrementalEncoderForEndingGeneration, IncrementalEncoderTokenizer

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
