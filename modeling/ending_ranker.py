# Copyright 2026 The hf_storyend authors.
# SPDX-License-Identifier: Apache-2.0
"""
Ending ranker: which of several endings fits a story best.

A model gives the likeliest ending, which need not be the one that readers call right. The ranker reads what the frozen
model makes of the story and of each ending (word vectors, LSTM states, log probabilities) with a small Transformer:
words of an ending attend to each other, in both directions, and to all words of the story. Its score is the mean over
the ending, through a linear layer, plus a weighted sum of the model's own log probability, that per word, and the
number of words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from transformers.utils import ModelOutput

from .configuration_incremental_encoder import IncrementalEncoderConfig

_NUM_HEADS = 4
# Sentences are told apart by their distance to the ending, up to this one.
_MAX_DISTANCE = 8


@dataclass
class RankerOutput(ModelOutput):
    """
    Endings of a batch of stories, as the ranker sees them.

    Args:
        scores (`torch.Tensor` of shape `[B, C]`): The higher, the better the ending fits; comparable within a story.
        log_probabilities (`torch.Tensor` of shape `[B, C]`): Of the endings, end symbol included, by the model.
    """

    scores: torch.Tensor | None = None
    log_probabilities: torch.Tensor | None = None


class RankerLayer(nn.Module):
    """Pre-norm Transformer layer: self-attention, attention to the story, feed-forward network."""

    def __init__(self, size: int, dropout: float):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(size) for _ in range(3))
        self.self_attention = RankerAttention(size)
        self.story_attention = RankerAttention(size)
        self.feed_forward = nn.Sequential(nn.Linear(size, 4 * size), nn.GELU(), nn.Linear(4 * size, size))
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, ending: torch.Tensor, ending_mask: torch.Tensor, story: torch.Tensor, story_mask: torch.Tensor
    ) -> torch.Tensor:
        """Endings [B, C, T, D] with masks [B, C, T]; words of their stories [B, M, D] with masks [B, M]."""
        normed = self.norms[0](ending).flatten(0, 1)
        read = self.self_attention(normed, normed, ending_mask.flatten(0, 1))
        ending = ending + self.dropout(read.view_as(ending))
        # All endings of a story at once: their words do not see each other here.
        read = self.story_attention(self.norms[1](ending).flatten(1, 2), story, story_mask)
        ending = ending + self.dropout(read.view_as(ending))
        return ending + self.dropout(self.feed_forward(self.norms[2](ending)))


class RankerAttention(nn.Module):
    """Multi-head scaled dot-product attention of queries [N, Q, D] to vectors [N, M, D]."""

    def __init__(self, size: int):
        super().__init__()
        self.query, self.key, self.value, self.merge = (nn.Linear(size, size) for _ in range(4))

    def forward(self, queries: torch.Tensor, memory: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        query, key, value = (
            layer(vectors).unflatten(-1, (_NUM_HEADS, -1)).transpose(1, 2)
            for layer, vectors in ((self.query, queries), (self.key, memory), (self.value, memory))
        )
        read = functional.scaled_dot_product_attention(query, key, value, mask[:, None, None])
        return self.merge(read.transpose(1, 2).flatten(2))


class EndingRanker(nn.Module):
    """
    Scores of endings, from what the model makes of stories and endings.

    Args:
        config: The model's configuration: `ranker_size`, `num_ranker_layers` and `ranker_dropout`, and the sizes of
            what is read.
    """

    def __init__(self, config: IncrementalEncoderConfig):
        super().__init__()
        assert config.ranker_size is not None, "a model without `ranker_size` has no ranker"
        size = config.ranker_size
        num_features = config.embedding_size + config.hidden_size
        self.distance_embedding = nn.Embedding(_MAX_DISTANCE, size)
        self.story_projection = nn.Linear(num_features, size)
        # One more: the log probability of the word.
        self.ending_projection = nn.Linear(num_features + 1, size)
        self.story_norm, self.norm = nn.LayerNorm(size), nn.LayerNorm(size)
        self.layers = nn.ModuleList(RankerLayer(size, config.ranker_dropout) for _ in range(config.num_ranker_layers))
        self.scorer = nn.Linear(size, 1)
        self.likelihood = nn.Linear(3, 1, bias=False)
        self.dropout = nn.Dropout(config.ranker_dropout)

    def forward(
        self,
        story: torch.Tensor,
        story_mask: torch.Tensor,
        ending: torch.Tensor,
        ending_mask: torch.Tensor,
        log_probabilities: torch.Tensor,
    ) -> torch.Tensor:
        """
        Scores [B, C].

        Args:
            story: Word vectors and states at the words of the stories, [B, K, L, E + D].
            story_mask: [B, K, L], true at words.
            ending: The same of the endings, [B, C, T, E + D].
            ending_mask: [B, C, T], true at words; an ending has at least one.
            log_probabilities: [B, C, T + 1] of the words and of the end symbol, 0 at padding.
        """
        story = self.story_projection(self.dropout(story)) + self._distances(story_mask).unsqueeze(2)
        story = self.story_norm(story).flatten(1, 2)
        by_word = log_probabilities[..., :-1].unsqueeze(-1).to(ending.dtype)
        ending = self.ending_projection(torch.cat((self.dropout(ending), by_word), dim=-1))
        for layer in self.layers:
            ending = layer(ending, ending_mask, story, story_mask.flatten(1))
        weights = ending_mask.unsqueeze(-1).to(ending.dtype)
        mean = (self.norm(ending) * weights).sum(dim=2) / weights.sum(dim=2)
        total, num_words = log_probabilities.sum(dim=2), ending_mask.sum(dim=2) + 1
        statistics = torch.stack((total, total / num_words * 10, num_words - 10.0), dim=-1).to(ending.dtype)
        return (self.scorer(mean) + self.likelihood(statistics / 10)).squeeze(-1)

    def _distances(self, story_mask: torch.Tensor) -> torch.Tensor:
        """[B, K, D]: how many sentences stand between each sentence and the ending."""
        has_words = story_mask.any(dim=2).long()
        behind = has_words.flip(1).cumsum(dim=1).flip(1) - has_words
        return self.distance_embedding(behind.clamp(max=_MAX_DISTANCE - 1))


@torch.no_grad()
def read_endings(model: Any, labels: torch.Tensor, **inputs: Any) -> dict[str, torch.Tensor]:
    """
    What the frozen model makes of stories and endings: the arguments of [`EndingRanker`].

    Args:
        model: The model, in eval mode.
        labels: Endings with their end symbol, [B, C, T + 1], -100 at padding.
        inputs: The stories, as `forward` takes them.
    """
    num_stories, num_endings, _ = labels.shape
    flat = labels.flatten(0, 1)
    encoded = model.encoder(**inputs, output_hidden_states=True)
    top_layer = model.config.num_layers
    story = torch.cat((encoded.hidden_states[0], encoded.hidden_states[top_layer]), dim=-1)[:, :, 1:]
    repeated = {
        name: tensor.repeat_interleave(num_endings, dim=0)
        for name, tensor in encoded.items()
        if isinstance(tensor, torch.Tensor)
    }
    # The start symbol and all words: the end symbol is predicted, and never read.
    word_ids = model.prepare_decoder_input_ids_from_labels(flat)
    output = model(
        encoder_outputs=type(encoded)(**repeated),
        decoder_input_ids=word_ids,
        decoder_attention_mask=(flat >= 0),
        output_hidden_states=True,
        use_cache=False,
    )
    columns = model.output_columns(flat).clamp(min=0).unsqueeze(2)
    log_probabilities = output.logits.float().log_softmax(dim=-1).gather(2, columns).squeeze(2) * (flat >= 0)
    ending = torch.cat((output.decoder_hidden_states[0], output.decoder_hidden_states[top_layer]), dim=-1)[:, 1:]
    is_word = (flat[:, 1:] >= 0).view(num_stories, num_endings, -1)
    mask = inputs.get("attention_mask")
    return {
        "story": story,
        "story_mask": torch.ones(story.shape[:3], dtype=torch.bool) if mask is None else mask.to(torch.bool),
        "ending": ending.unflatten(0, (num_stories, num_endings)),
        "ending_mask": is_word,
        "log_probabilities": log_probabilities.view(num_stories, num_endings, -1),
    }
