# Copyright 2026 The hf_storyend authors.
# SPDX-License-Identifier: Apache-2.0
"""
Words from knowledge: a pointer to the tails of the story's triples.

Every triple R = (h, r, t) of the story offers the forms of its tail that the vocabulary has: (oven, UsedFor, burn) the
words burn, burns, burned, burning. An offer multiplies a word's chance of being generated, in one softmax with the
vocabulary and the places that words can be copied from (`copying.py`):

    p(y) = (exp psi_g(y) * (1 + sum over triples R that offer y of exp psi_R) + sum over places of exp psi_c) / Z
    psi_R = s_t . tanh(W_t [e(h) ; e(r) ; e(t)] + b_t + W_u h_m) / sqrt(D) + g_0(s_t) + g_1(s_t) w_R

where h_m is the encoder's output at the head, w_R the triple's weight (the log of how much likelier the tail is in the
ending of a story with the head) and g_0, g_1 are linear in s_t: when knowledge is used, and how much weights count.
They start at -1 and 1, so that an untrained pointer boosts by what the weight says. Words that stand in the story are
not offered where they can be copied. The probability of a word thus splits exactly into vocabulary, places of the
story and triples: see `WordSources`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional

from .configuration_incremental_encoder import IncrementalEncoderConfig
from .copying import PADDING
from .story_inputs import StoryInputs
from .tensor_utils import DistinctTriples, is_eager_mode, upcast


class TailMemory(NamedTuple):
    """The R triples of a story as the decoder points to them; all tensors have the batch first."""

    keys: torch.Tensor  # [B, R, D]
    weights: torch.Tensor  # [B, R]
    ids: torch.Tensor  # [B, R, F], words that a triple offers, PADDING elsewhere
    positions: torch.Tensor  # [B, R], where the triple stands among all of the story, [K * L * N]


@dataclass
class WordSources:
    """
    Where each word of an ending comes from. `vocabulary`, the sum of `places` and the sum of `triples` make up its
    probability.
    """

    probabilities: torch.Tensor  # [B, T]
    vocabulary: torch.Tensor  # [B, T]
    places: torch.Tensor  # [B, T, K, L], words of the story
    triples: torch.Tensor  # [B, T, K, L, N], triples of those words


class PointerGate(nn.Linear):
    """g_0 and g_1: linear in the decoder's output, at first constant."""

    init_std = 0.0

    def initial_bias(self) -> torch.Tensor:
        return torch.tensor([-1.0, 1.0]).to(self.bias)


class TailPointer(nn.Module):
    """Keys of a story's triples, and the scores of their tails."""

    def __init__(self, config: IncrementalEncoderConfig, state_size: int):
        super().__init__()
        size = config.embedding_size
        self.embed_relations = nn.Embedding(config.num_relations, size)
        self.triple_projection = nn.Linear(3 * size, config.hidden_size)  # W_t, b_t
        self.triple_projection.init_std = 0.5 * (3 * size) ** -0.5 / config.initializer_range
        self.state_projection = nn.Linear(state_size, config.hidden_size, bias=False)  # W_u
        self.state_projection.init_std = 0.5 * state_size**-0.5
        self.gate = PointerGate(config.hidden_size, 2)
        self.score_scale = config.hidden_size**-0.5
        self.vocab_size, self.is_copying = config.vocab_size, config.copy

    def project_memory(self, states: torch.Tensor, inputs: StoryInputs, embed_tokens: nn.Embedding) -> TailMemory:
        """Memory of a story from the encoder's outputs [B, K, L, C] at its words."""
        positions, mask = _pack(inputs.triple_mask.flatten(1), inputs.host.num_triples)
        keys = self._keys(inputs.triples, embed_tokens)
        num_triples = inputs.triple_mask.shape[3]
        heads = self.state_projection(states.flatten(1, 2))  # [B, K * L, D]
        at_heads = _take(heads, positions // num_triples)
        of_triples = functional.embedding(_take(inputs.triples.index.flatten(1), positions), keys)
        ids = _take(inputs.tail_form_ids.flatten(1, 3), positions).masked_fill(~mask.unsqueeze(-1), PADDING)
        if self.is_copying:
            ids = self._without_words_of_story(ids, inputs)
        # Whatever stands at padding must not reach a gradient.
        weights = _take(inputs.triple_weights.flatten(1), positions).masked_fill(~mask, 0.0).to(states.dtype)
        return TailMemory((of_triples + at_heads).tanh(), weights, ids, positions)

    def _keys(self, triples: DistinctTriples, embed_tokens: nn.Embedding) -> torch.Tensor:
        """W_t [e(h) ; e(r) ; e(t)] + b_t of the distinct triples of a batch, [U + 1, D]."""
        # One more, which nothing points to: there may be none.
        heads, relations, tails = functional.pad(triples.ids, (0, 0, 0, 1)).unbind(-1)
        # As one sequence: hooks of the embeddings expect [B, J, E].
        head_vectors, tail_vectors = (embed_tokens(ids.unsqueeze(0)).squeeze(0) for ids in (heads, tails))
        elements = (head_vectors, self.embed_relations(relations), tail_vectors)
        return self.triple_projection(torch.cat(elements, dim=-1))

    def _without_words_of_story(self, ids: torch.Tensor, inputs: StoryInputs) -> torch.Tensor:
        """Offered words [B, R, F], with PADDING for those that the story has."""
        # One column more takes padding.
        words = inputs.word_ids.masked_fill(~inputs.word_mask, self.vocab_size).flatten(1)
        stands_there = ids.new_zeros(ids.shape[0], self.vocab_size + 1).scatter(1, words, 1)[:, :-1]
        offered = ids.clamp(min=0).flatten(1)
        return ids.masked_fill(stands_there.gather(1, offered).view_as(ids).bool(), PADDING)

    def score_triples(self, outputs: torch.Tensor, memory: TailMemory) -> torch.Tensor:
        """psi_R [B, T, R] for decoder outputs [B, T, D], in at least single precision."""
        constant, factor = self.gate(outputs).unbind(-1)
        scores = outputs @ memory.keys.mT * self.score_scale
        return upcast(scores + constant.unsqueeze(-1) + factor.unsqueeze(-1) * memory.weights.unsqueeze(1))


def form_scores(triple_scores: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """psi_R at each form of each triple, [..., R * F] from [..., R] and the words [..., R, F]; lowest at padding."""
    scores = triple_scores.unsqueeze(-1).expand(*triple_scores.shape, ids.shape[-1])
    return scores.masked_fill(ids == PADDING, torch.finfo(scores.dtype).min / 2).flatten(-2)


def boost_forms(logits: torch.Tensor, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    """psi_g + psi_R [B, T, Q] of the forms [B, Q] of tails, from psi_g [B, T, V] and psi_R [B, T, Q]."""
    index = ids.clamp(min=0).unsqueeze(1).expand(-1, logits.shape[1], -1)
    return upcast(logits.gather(2, index)) + scores


def split_probabilities(
    logits: torch.Tensor,
    places: tuple[torch.Tensor, torch.Tensor] | None,
    forms: tuple[torch.Tensor, torch.Tensor] | None,
    tails: TailMemory | None,
    labels: torch.Tensor,
    shape: torch.Size,
) -> WordSources:
    """
    Sources of the labels [B, T] from psi_g [B, T, V] and the words and scores of both pointers; `shape` is that of
    the story's triples, [B, K, L, N].
    """
    pointed = [scores for _, scores in filter(None, (places, forms))]
    normalizer = torch.cat((logits, *pointed), dim=2).logsumexp(dim=2)
    num_stories, num_words, is_real = shape[0], logits.shape[2], labels >= 0
    generated = logits.gather(2, labels.clamp(0, num_words - 1).unsqueeze(2)).squeeze(2)
    vocabulary = (generated - normalizer).exp() * (is_real & (labels < num_words))
    copied, boosted = (
        labels.new_zeros(*labels.shape, 0)
        if pair is None
        else (pair[1] - normalizer.unsqueeze(2)).exp() * (pair[0].unsqueeze(1) == labels.unsqueeze(2))
        for pair in (places, forms)
    )
    by_place = logits.new_zeros(*labels.shape, shape[1] * shape[2])
    by_triple = logits.new_zeros(*labels.shape, shape[1] * shape[2] * shape[3])
    if places is not None:
        by_place = copied
    if tails is not None:
        by_form = boosted.unflatten(2, tails.ids.shape[1:]).sum(dim=3)
        by_triple = by_triple.scatter_add(2, tails.positions.unsqueeze(1).expand_as(by_form), by_form)
    return WordSources(
        vocabulary + by_place.sum(dim=2) + by_triple.sum(dim=2),
        vocabulary,
        by_place.view(num_stories, -1, *shape[1:3]),
        by_triple.view(num_stories, -1, *shape[1:]),
    )


def _pack(mask: torch.Tensor, counts: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """
    Positions [B, R] of the real entries of each row of a mask [B, M], padded; and which of them are real. The host
    knows how many there are in each, counts [B].
    """
    if not is_eager_mode(mask):
        # How many there are depends on the data: all positions, as they stand.
        return torch.arange(mask.shape[1], device=mask.device).expand_as(mask), mask
    positions = mask.long().argsort(dim=1, descending=True, stable=True)[:, : max(1, int(counts.max()))]
    return positions, mask.gather(1, positions)


def _take(rows: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """Entries [B, R, ...] of rows [B, M, ...] at positions [B, R]."""
    index = positions.view(*positions.shape, *(1,) * (rows.ndim - 2)).expand(*positions.shape, *rows.shape[2:])
    return rows.gather(1, index)
