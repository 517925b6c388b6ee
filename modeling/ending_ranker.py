# Copyright 2026 The hf_storyend authors.
# SPDX-License-Identifier: Apache-2.0
"""
Ending ranker: which of several endings fits a story best.

A model gives the likeliest ending, which need not be the one that readers call right. The ranker is a small
Transformer of its own. Words of the story attend to each other; words of an ending attend to each other, in both
directions, and to all words of the story, in one softmax. A story is read once for all of its endings. The score is
that of the mean over the ending, plus a weighted sum of the model's own log probability, that per word, and the number
of words.

Layers are BERT's (post-norm, learnt positions), so that a ranker can start from a pre-trained encoder.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from transformers.utils import ModelOutput

from .configuration_incremental_encoder import IncrementalEncoderConfig
from .losses import IGNORED
from .oov_ids import to_slots

# Words of the story, start symbol included, that are read: the last ones. The other positions are those of an ending.
MAX_POSITIONS, MAX_STORY_WORDS = 128, 96

KeysAndValues = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


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
    """Post-norm Transformer layer, whose words may attend to those of a prefix, too."""

    def __init__(self, size: int, num_heads: int, dropout: float):
        super().__init__()
        self.num_heads = num_heads
        self.query, self.key, self.value, self.merge = (nn.Linear(size, size) for _ in range(4))
        self.attention_norm = nn.LayerNorm(size)
        self.feed_forward = nn.Sequential(nn.Linear(size, 4 * size), nn.GELU(), nn.Linear(4 * size, size))
        self.output_norm = nn.LayerNorm(size)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, words: torch.Tensor, mask: torch.Tensor, prefix: KeysAndValues | None = None
    ) -> tuple[torch.Tensor, KeysAndValues]:
        """Words [N, T, D] with masks [N, T]; returns them and what words behind them may attend to."""
        query, keys, values = (self._heads(layer(words)) for layer in (self.query, self.key, self.value))
        own = keys, values, mask
        if prefix is not None:
            keys, values = (torch.cat(pair, dim=2) for pair in ((prefix[0], keys), (prefix[1], values)))
            mask = torch.cat((prefix[2], mask), dim=1)
        # Written out: on a CPU the gradient of torch's own attention takes three times as long for so few words.
        scores = (query @ keys.transpose(2, 3)).float() / query.shape[3] ** 0.5
        weights = scores.masked_fill(~mask[:, None, None], torch.finfo(scores.dtype).min).softmax(dim=3)
        read = weights.to(values) @ values
        words = self.attention_norm(words + self.dropout(self.merge(read.transpose(1, 2).flatten(2))))
        return self.output_norm(words + self.dropout(self.feed_forward(words))), own

    def _heads(self, vectors: torch.Tensor) -> torch.Tensor:
        return vectors.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)


class EndingRanker(nn.Module):
    """
    Scores of endings.

    Args:
        config: The model's configuration: `ranker_size`, `ranker_embedding_size`, `num_ranker_layers`,
            `num_ranker_heads`, `ranker_dropout` and what the ids of words mean.
    """

    def __init__(self, config: IncrementalEncoderConfig):
        super().__init__()
        assert config.ranker_size is not None, "a model without `ranker_size` has no ranker"
        size = config.ranker_size
        # Words out of the vocabulary are told apart by their slots.
        num_words = config.vocab_size + config.num_copy_slots
        self.word_embeddings = nn.Embedding(num_words, config.ranker_embedding_size)
        self.embedding_projection = nn.Linear(config.ranker_embedding_size, size)
        self.position_embeddings = nn.Embedding(MAX_POSITIONS, size)
        self.embedding_norm = nn.LayerNorm(size)
        self.layers = nn.ModuleList(
            RankerLayer(size, config.num_ranker_heads, config.ranker_dropout) for _ in range(config.num_ranker_layers)
        )
        self.scorer = nn.Linear(size, 1)
        self.likelihood = nn.Linear(3, 1, bias=False)
        self.dropout = nn.Dropout(config.ranker_dropout)

    def forward(
        self,
        story_ids: torch.Tensor,
        story_mask: torch.Tensor,
        ending_ids: torch.Tensor,
        ending_mask: torch.Tensor,
        log_probabilities: torch.Tensor,
        num_words: torch.Tensor,
    ) -> torch.Tensor:
        """
        Scores [B, C].

        Args:
            story_ids: Start symbol and words of the stories, [B, M], as `ranker_inputs` gives them.
            story_mask: [B, M], true at words that are read.
            ending_ids: Start symbol, words and end symbol of the endings, [B, C, T].
            ending_mask: [B, C, T], true at what is read.
            log_probabilities: Of the endings by the model, [B, C].
            num_words: Of the endings, end symbols included, [B, C].
        """
        num_stories, num_endings, length = ending_ids.shape
        places = story_mask.cumsum(dim=1) - 1
        story = self.embed(story_ids, places.clamp(min=0))
        behind = (places[:, -1:] + 1 + torch.arange(length, device=places.device)).clamp(max=MAX_POSITIONS - 1)
        ending = self.embed(ending_ids.flatten(0, 1), behind.repeat_interleave(num_endings, dim=0))
        mask = ending_mask.flatten(0, 1)
        for layer in self.layers:
            story, memory = layer(story, story_mask)
            prefix = tuple(part.repeat_interleave(num_endings, dim=0) for part in memory)
            ending, _ = layer(ending, mask, prefix)
        weights = mask.unsqueeze(-1).to(ending.dtype)
        mean = (ending * weights).sum(dim=1) / weights.sum(dim=1)
        statistics = (log_probabilities, log_probabilities / num_words * 10, num_words - 10.0)
        likelihood = self.likelihood(torch.stack(statistics, dim=-1).to(mean.dtype) / 10)
        return self.scorer(mean).view(num_stories, num_endings) + likelihood.squeeze(-1)

    def embed(self, ids: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """Vectors [N, T, D] of words at positions."""
        words = self.embedding_projection(self.word_embeddings(ids))
        return self.dropout(self.embedding_norm(words + self.position_embeddings(positions)))


def ranker_inputs(
    config: IncrementalEncoderConfig,
    labels: torch.Tensor,
    input_ids: torch.Tensor,
    attention_mask: torch.Tensor | None = None,
    copy_ids: torch.Tensor | None = None,
) -> dict[str, torch.Tensor]:
    """
    Ids and masks of stories [B, K, L] and of endings [B, C, T], as the ranker takes them.

    Args:
        config: The model's configuration.
        labels: Endings with their end symbols, -100 at padding.
        input_ids: Words of the stories.
        attention_mask: True at words.
        copy_ids: The same words, those out of the vocabulary by ids of their own.
    """
    ids = (input_ids if copy_ids is None else copy_ids).flatten(1)
    mask = torch.ones_like(ids) if attention_mask is None else attention_mask.flatten(1)
    # The last words are those that an ending follows from.
    num_behind = mask.flip(1).cumsum(dim=1).flip(1)
    is_read = mask.bool() & (num_behind < MAX_STORY_WORDS)
    is_word = labels != IGNORED
    columns = [_columns(config, words) for words in (ids, labels.masked_fill(~is_word, config.pad_token_id))]
    story, ending = (functional.pad(words, (1, 0), value=config.decoder_start_token_id) for words in columns)
    masks = [functional.pad(mask, (1, 0), value=True) for mask in (is_read, is_word)]
    return {
        "story_ids": story,
        "story_mask": masks[0],
        "ending_ids": ending,
        "ending_mask": masks[1],
        "num_words": is_word.sum(dim=2),
    }


def _columns(config: IncrementalEncoderConfig, ids: torch.Tensor) -> torch.Tensor:
    return to_slots(ids, config.vocab_size, config.num_copy_slots)


@torch.no_grad()
def ending_log_probabilities(model: Any, labels: torch.Tensor, **inputs: Any) -> torch.Tensor:
    """
    Log probabilities [B, C] of endings, end symbols included, by the model itself.

    Args:
        model: The model, in eval mode.
        labels: Endings with their end symbols, [B, C, T], -100 at padding.
        inputs: The stories, as `forward` takes them.
    """
    flat = labels.flatten(0, 1)
    encoded = model.encoder(**inputs)
    repeated = {
        name: tensor.repeat_interleave(labels.shape[1], dim=0)
        for name, tensor in encoded.items()
        if isinstance(tensor, torch.Tensor)
    }
    output = model(
        encoder_outputs=type(encoded)(**repeated),
        decoder_input_ids=model.prepare_decoder_input_ids_from_labels(flat),
        decoder_attention_mask=flat != IGNORED,
        use_cache=False,
    )
    columns = model.output_columns(flat).clamp(min=0).unsqueeze(2)
    of_words = output.logits.float().log_softmax(dim=-1).gather(2, columns).squeeze(2)
    return (of_words * (flat != IGNORED)).sum(dim=1).view(labels.shape[:2])
