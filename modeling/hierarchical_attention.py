"""Hierarchical attention: to sentences first, then to the words, and the graphs of words, inside each of them."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from .configuration_incremental_encoder import IncrementalEncoderConfig
from .masked_softmax import masked_softmax
from .multi_source_attention import MultiSourceAttention, SentenceMemory
from .word_rows import Graphs


class HierarchicalAttention(nn.Module):
    """
    Attention to all K sentences of a story on both levels, for a query q:

        gamma_i  = softmax over i of  q . W_u u_i            sentences with words
        alpha_ij = softmax over j of  q . W_s h_ij           words of sentence i
        beta_ij  = softmax over j of  q . W_k g_ij           graphs of those words, if there is knowledge
        c = W_l [sum_ij gamma_i alpha_ij h_ij ; sum_ij gamma_i beta_ij g_ij] + b_l + W_v sum_i gamma_i u_i

    with u_i the states of the sentence level, h_ij those of the word level and g_ij graph vectors. Words and graphs
    are scored and merged by the multi-source attention of the incremental encoder.

    A story's memory is a `SentenceMemory` of its K * L words, with K rows of keys and values more, those of the
    sentences, behind the words and graphs.
    """

    def __init__(self, config: IncrementalEncoderConfig):
        super().__init__()
        self.words = MultiSourceAttention(config)
        self.sentence_scorer = nn.Linear(config.hidden_size, config.hidden_size, bias=False)
        self.sentence_merge = nn.Linear(config.hidden_size, config.hidden_size, bias=False)

    def remember(
        self,
        states: torch.Tensor,
        graphs: Graphs | None,
        word_mask: torch.Tensor,
        sentence_states: torch.Tensor,
    ) -> SentenceMemory:
        """
        Memory of a story from the states [B, K * L, D] at its words, their graphs and the states [B, K, D] of its
        sentences.
        """
        words = self.words.remember(states, graphs, word_mask)
        sentence_values = self.sentence_merge(sentence_states)
        # The words' values are wider where the merge must be called at every step.
        missing = words.values.shape[2] - sentence_values.shape[2]
        return SentenceMemory(
            torch.cat((words.keys, self.sentence_scorer(sentence_states) * self.words.score_scale), dim=1),
            torch.cat((words.values, functional.pad(sentence_values, (0, missing))), dim=1),
            words.mask,
        )

    def forward(self, query: torch.Tensor, memory: SentenceMemory) -> tuple[torch.Tensor, torch.Tensor]:
        """
        Context [B, D] for a query [B, D], and the weights gamma * alpha and gamma * beta, [B, S, K * L]. Rows may
        share a memory, as in [`MultiSourceAttention`].
        """
        num_memories, num_sources, num_words = memory.mask.shape
        sizes = (num_sources * num_words, memory.keys.shape[1] - num_sources * num_words)
        mask = memory.mask.view(num_memories, 1, num_sources, sizes[1], -1)  # [M, 1, S, K, L]
        queries = query.view(num_memories, -1, query.shape[-1])  # [M, B / M, D]
        word_scores, sentence_scores = (queries @ memory.keys.mT).split(sizes, dim=2)
        word_values, sentence_values = memory.values.split(sizes, dim=1)
        sentence_weights = masked_softmax(sentence_scores, mask[:, :, 0].any(dim=3))
        word_scores = word_scores.unflatten(2, (num_sources, *mask.shape[3:]))  # [M, B / M, S, K, L]
        word_weights = masked_softmax(word_scores, mask) * sentence_weights[:, :, None, :, None]
        reads = word_weights.flatten(2) @ word_values
        merged = reads + self.words.merge.bias if self.words.can_fold_merge else self.words.merge(reads)
        context = merged + sentence_weights @ sentence_values[..., : query.shape[-1]]
        return context.flatten(0, 1), word_weights.flatten(3).flatten(0, 1)
