# Copyright 2026 The hf_storyend authors.
# SPDX-License-Identifier: Apache-2.0
"""
Effects: how much less likely an ending is without a triple or a sentence of its story.

The effect of a part is log p(ending | story) - log p(ending | story without it), in nats; its exponential is the
factor by which the ending is less likely. Both are None if the ending can't be written any more, because a word that
it copies is gone. Parts are removed by masks, all in one batch: a masked triple or sentence is as good as none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from transformers import PreTrainedModel

# Rows that are computed at a time.
_MAX_ROWS = 64
# math.exp overflows at 710.
_MAX_EXPONENT = 700

Effect = dict[str, float | None]


@torch.no_grad()
def removal_effects(
    model: PreTrainedModel,
    story: Mapping[str, torch.Tensor],
    ending_ids: Sequence[int],
    triples: Sequence[torch.Tensor] = (),
    sentences: Sequence[int] = (),
) -> tuple[list[Effect], list[Effect]]:
    """
    Effects of triples and of sentences, each removed alone, as dicts of `effect` and `factor`.

    Args:
        model: A model in eval mode.
        story: Its inputs, for one story.
        ending_ids: Words of the ending and its end symbol, if it has one.
        triples: Masks [K, L, N], true at what is removed together.
        sentences: Numbers, from 0, of sentences; the story must have others.
    """
    rows = [{"triple_mask": story["triple_mask"][0] * ~removed.to(model.device)} for removed in triples]
    rows += [{"attention_mask": _without_row(story["attention_mask"][0], number)} for number in sentences]
    if not rows:
        return [], []
    as_given, *changed = _log_probabilities(model, story, ending_ids, [{}, *rows])
    effects = [_effect(as_given - value) for value in changed]
    return effects[: len(triples)], effects[len(triples) :]


def _without_row(mask: torch.Tensor, number: int) -> torch.Tensor:
    mask = mask.clone()
    mask[number] = 0
    return mask


def _log_probabilities(
    model: PreTrainedModel,
    story: Mapping[str, torch.Tensor],
    ending_ids: Sequence[int],
    rows: Sequence[Mapping[str, torch.Tensor]],
) -> list[float]:
    """Log probability of the ending with the story's tensors changed as each row says."""
    labels = torch.tensor([list(ending_ids)], device=model.device)
    word_ids = model.prepare_decoder_input_ids_from_labels(labels)
    found: list[float] = []
    for start in range(0, len(rows), _MAX_ROWS):
        chunk = rows[start : start + _MAX_ROWS]
        batch = {name: torch.stack([row.get(name, tensor[0]) for row in chunk]) for name, tensor in story.items()}
        logits = model(**batch, decoder_input_ids=word_ids.expand(len(chunk), -1), use_cache=False).logits
        index = labels.unsqueeze(2).expand(len(chunk), -1, -1)
        found += logits.double().log_softmax(dim=-1).gather(2, index).sum(dim=(1, 2)).tolist()
    return found


def _effect(nats: float) -> Effect:
    if not math.isfinite(nats):
        return {"effect": None, "factor": None}
    return {"effect": nats, "factor": math.exp(nats) if nats < _MAX_EXPONENT else None}
