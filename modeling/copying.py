# Copyright 2026 The hf_storyend authors.
# SPDX-License-Identifier: Apache-2.0
"""
Copying words of the story into the ending: the mechanism of Gu et al., "Incorporating Copying Mechanism in
Sequence-to-Sequence Learning" (CopyNet), ACL 2016.

The next word is generated from the vocabulary or copied from one of the M places of the story's words, in one softmax:

    p(y) = (exp psi_g(y) + sum over places m with x_m = y of exp psi_c(m)) / Z
    psi_g(y) = W_0 s_t + b_0 at y,   psi_c(m) = s_t . tanh(W_c h_m)

Words out of the vocabulary have ids of their own in each story, the *slots* V, V + 1, ..., and no psi_g. The decoder
reads a slot as the unknown word, and every word that stands in the story together with what the encoder knows of it
(the selective read): e(y) + W_z times the mean of h_m over the places with x_m = y. In CopyNet this mean is weighted
by the probabilities of the step before; a rare word mostly stands in one place, where both are the same.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional

from .configuration_incremental_encoder import IncrementalEncoderConfig
from .losses import IGNORED, PADDING, SampledSoftmax, real_positions
from .tensor_utils import is_eager_mode, upcast

# e^-40 added to a sum of probabilities does not change it, even in double precision.
_LOG_IMPOSSIBLE = 40.0


class CopyMemory(NamedTuple):
    """The words of a story as the decoder copies them; all tensors have the batch first."""

    keys: torch.Tensor  # [B, M, D], tanh(W_c h)
    vectors: torch.Tensor  # [B, M, E], W_z h
    ids: torch.Tensor  # [B, M], word ids or OOV ids, PADDING elsewhere

    @property
    def mask(self) -> torch.Tensor:
        return self.ids != PADDING


class CopyMechanism(nn.Module):
    """What copying adds to a model: a scorer of story positions, and the selective read."""

    def __init__(self, config: IncrementalEncoderConfig, state_size: int):
        super().__init__()
        self.scorer = nn.Linear(state_size, config.hidden_size, bias=False)
        self.reader = nn.Linear(state_size, config.embedding_size, bias=False)

    def project_memory(self, states: torch.Tensor, copy_ids: torch.Tensor, word_mask: torch.Tensor) -> CopyMemory:
        """Memory of a story from the encoder's states [B, K, L, C] at its words and their ids [B, K, L]."""
        ids = copy_ids.masked_fill(~word_mask, PADDING).flatten(1)
        states = states.flatten(1, 2)
        return CopyMemory(self.scorer(states).tanh(), self.reader(states), ids)

    @staticmethod
    def selective_read(word_ids: torch.Tensor, memory: CopyMemory) -> torch.Tensor:
        """Mean of the vectors [B, T, E] at the positions of words [B, T]: zero for words that are not in the story."""
        positions = (word_ids.unsqueeze(2) == memory.ids.unsqueeze(1)).to(memory.vectors.dtype)
        return (positions / positions.sum(dim=2, keepdim=True).clamp(min=1)) @ memory.vectors

    @staticmethod
    def score_positions(outputs: torch.Tensor, memory: CopyMemory) -> torch.Tensor:
        """psi_c [B, T, M] for decoder outputs [B, T, D], in at least single precision; lowest at padding."""
        scores = upcast(outputs @ memory.keys.mT)
        return scores.masked_fill(~memory.mask.unsqueeze(1), torch.finfo(scores.dtype).min)


def extend_logits(logits: torch.Tensor, scores: torch.Tensor, ids: torch.Tensor, num_slots: int) -> torch.Tensor:
    """
    Logits [B, T, V + slots] whose softmax is p(y), from psi_g [B, T, V] and the scores [B, T, M] and words [B, M] of
    the M entries beside the vocabulary. A slot that no word of the story has gets minus infinity.
    """
    num_words = logits.shape[2] + num_slots
    first = _first_positions(ids)
    is_first = first == torch.arange(ids.shape[1], device=ids.device)
    totals = _total_at_first_positions(scores, first, is_first)
    # One column more takes what counts nowhere: padding, and the places where a word stands again.
    extended = functional.pad(logits, (0, num_slots + 1), value=-torch.inf)
    columns = ids.masked_fill(~is_first | (ids == PADDING), num_words).unsqueeze(1).expand_as(totals)
    mixed = torch.logaddexp(upcast(extended.gather(2, columns)), totals)
    return extended.scatter(2, columns, mixed.to(logits.dtype))[..., :num_words]


def make_finite(logits: torch.Tensor, vocab_size: int) -> torch.Tensor:
    """Slots of no word made as unlikely as can be, for losses that sum over all columns; they have no gradient."""
    words, slots = logits.split((vocab_size, logits.shape[-1] - vocab_size), dim=-1)
    lowest = (upcast(logits).logsumexp(dim=-1, keepdim=True) - _LOG_IMPOSSIBLE).to(logits.dtype)
    return torch.cat((words, slots.where(slots > -torch.inf, lowest)), dim=-1)


def merge_oov_logits(logits: torch.Tensor, vocab_size: int, unk_token_id: int) -> torch.Tensor:
    """
    Logits [..., V] in which every slot counts as the unknown word, from [..., V + slots]: what a model that copies
    says about the words of the vocabulary, to be compared with one that does not.
    """
    words, slots = logits.split((vocab_size, logits.shape[-1] - vocab_size), dim=-1)
    unknown = torch.cat((words[..., unk_token_id, None], slots), dim=-1).logsumexp(dim=-1, keepdim=True)
    index = torch.tensor([unk_token_id], device=logits.device)
    return words.index_copy(-1, index, unknown)


# Words [B, M] that are offered beside the vocabulary, and their scores [B, T, M].
Offers = tuple[torch.Tensor, torch.Tensor]


def pointer_loss(
    outputs: torch.Tensor,
    labels: torch.Tensor,
    lm_head: nn.Module,
    places: Offers | None,
    forms: Offers | None = None,
    softmax: SampledSoftmax | None = None,
    host_labels: torch.Tensor | None = None,
) -> torch.Tensor:
    """
    Sum of -log p(label) over the labels [B, T] that are not ignored, from outputs [B, T, D]. Only outputs with a label
    reach `lm_head`, unless the graph is traced. With sampled classes, p is the label's share among them.

    Args:
        places: Words of the story and psi_c, if words can be copied.
        forms: Forms of tails and psi_R, if there is a tail pointer: such a word's score is psi_g + psi_R.
        host_labels: The labels on the host, if it knows them.
    """
    nothing = labels[:, :0], outputs[..., :0]
    stories = torch.arange(labels.shape[0], device=labels.device).repeat_interleave(labels.shape[1])
    rows = [labels, outputs, (places or nothing)[1], (forms or nothing)[1]]
    targets, outputs, scores, boosts = (tensor.flatten(0, 1) for tensor in rows)
    if is_eager_mode(labels):
        real = real_positions(targets if host_labels is None else host_labels, targets.device)
        targets, outputs, scores, boosts, stories = (
            tensor.index_select(0, real) for tensor in (targets, outputs, scores, boosts, stories)
        )
    copied, offered = ((pair or nothing)[0].index_select(0, stories) for pair in (places, forms))
    if softmax is not None:
        losses = _sampled_losses(outputs, targets, lm_head, scores, copied, boosts, offered, softmax)
    else:
        logits = upcast(lm_head(outputs))
        boosted = logits.gather(1, offered.clamp(min=0)) + boosts
        words = torch.cat((copied, offered), dim=1)
        scores = torch.cat((scores.to(logits.dtype), boosted), dim=1)
        losses = -_log_likelihoods(logits, scores, words == targets.unsqueeze(1), targets)
    return losses.masked_fill(targets == IGNORED, 0.0).sum()


def _log_likelihoods(
    logits: torch.Tensor, scores: torch.Tensor, is_target: torch.Tensor, targets: torch.Tensor
) -> torch.Tensor:
    """log p(target) [N] from psi_g [N, V] and psi_c [N, M], without making the distribution they are part of."""
    num_words, lowest = logits.shape[1], torch.finfo(scores.dtype).min
    normalizer = torch.logaddexp(logits.logsumexp(dim=1), scores.logsumexp(dim=1))
    generated = logits.gather(1, targets.clamp(0, num_words - 1).unsqueeze(1)).squeeze(1)
    generated = generated.masked_fill(targets >= num_words, lowest)
    copied = scores.masked_fill(~is_target, lowest).logsumexp(dim=1)
    return torch.logaddexp(generated, copied) - normalizer


def _sampled_losses(
    outputs: torch.Tensor,
    targets: torch.Tensor,
    lm_head: nn.Module,
    scores: torch.Tensor,
    copied: torch.Tensor,
    boosts: torch.Tensor,
    offered: torch.Tensor,
    softmax: SampledSoftmax,
) -> torch.Tensor:
    """
    -log p(target) [N] where only the target and the sampled classes can be generated, copied or pointed to, from psi_c
    [N, M] and the words [N, M] at the places, psi_R [N, Q] and the forms [N, Q] of tails. An OOV id can always be
    copied: it is not among the classes to sample from.
    """
    num_words = len(softmax.log_expected_counts)
    generated, sampled = softmax.logits(outputs, targets.clamp(0, num_words - 1), lm_head)
    lowest = torch.finfo(sampled.dtype).min
    generated = generated.masked_fill((targets >= num_words).unsqueeze(1), lowest)
    is_target, is_oov = copied == targets.unsqueeze(1), copied >= num_words
    known = copied.clamp(0, num_words - 1)
    # Padding has the lowest score already.
    counts = is_target | is_oov | softmax.contains(known)
    correction = softmax.log_expected_counts[known].masked_fill(is_oov, 0.0)
    scores = (scores - correction).masked_fill(~counts, lowest)
    boosted, is_boosted_target = _sampled_boosts(generated, sampled, targets, boosts, offered, softmax)
    scores = torch.cat((scores, boosted), dim=1)
    normalizer = torch.cat((generated, sampled, scores), dim=1).logsumexp(dim=1)
    is_target = torch.cat((is_target, is_boosted_target), dim=1)
    pointed = torch.cat((generated, scores.masked_fill(~is_target, lowest)), dim=1).logsumexp(dim=1)
    return normalizer - pointed


def _sampled_boosts(
    generated: torch.Tensor,
    sampled: torch.Tensor,
    targets: torch.Tensor,
    boosts: torch.Tensor,
    offered: torch.Tensor,
    softmax: SampledSoftmax,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Corrected psi_g + psi_R [N, Q] of the forms that are the target or sampled; and which are the target."""
    lowest, known = torch.finfo(sampled.dtype).min, offered.clamp(min=0)
    columns = torch.zeros_like(softmax.log_expected_counts, dtype=torch.long)
    columns = columns.index_copy(0, softmax.ids, torch.arange(len(softmax.ids), device=columns.device))
    is_target = offered == targets.unsqueeze(1)
    scores = torch.where(is_target, generated, sampled.gather(1, columns[known])) + boosts
    return scores.masked_fill(~is_target & ~softmax.contains(known), lowest), is_target


def check_oov_labels(labels: torch.Tensor, copy_ids: torch.Tensor, vocab_size: int) -> None:
    """
    Refuse labels [B, T] with a slot that none of their story's copy_ids [B, M] has: nothing could ever produce them.
    Both are those of the host.
    """
    if not is_eager_mode(labels):
        return
    stands_there = (labels.unsqueeze(2) == copy_ids.unsqueeze(1)).any(dim=2)
    wrong = ((labels >= vocab_size) & ~stands_there).nonzero()
    if wrong.numel():
        story, place = wrong[0].tolist()
        raise ValueError(
            f"`labels` of story {story} holds {int(labels[story, place])}, a slot that none of its `copy_ids` has."
        )


def _first_positions(ids: torch.Tensor) -> torch.Tensor:
    """[B, M] -> for each place, the first one with the same word."""
    ordered, order = ids.sort(dim=1, stable=True)
    is_new = functional.pad(ordered[:, 1:] != ordered[:, :-1], (1, 0), value=True)
    starts = torch.arange(ids.shape[1], device=ids.device).where(is_new, 0).cummax(dim=1).values
    return torch.empty_like(order).scatter(1, order, order.gather(1, starts))


def _total_at_first_positions(scores: torch.Tensor, first: torch.Tensor, is_first: torch.Tensor) -> torch.Tensor:
    """Log of the summed exponentials of all places of a word, at its first place; 0 elsewhere. [B, T, M]"""
    groups = first.unsqueeze(1).expand_as(scores)
    highest = torch.zeros_like(scores).scatter_reduce(2, groups, scores.detach(), "amax", include_self=False)
    sums = torch.zeros_like(scores).scatter_add(2, groups, (scores - highest.gather(2, groups)).exp())
    return highest + sums.where(is_first.unsqueeze(1), 1.0).log()
