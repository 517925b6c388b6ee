"""A ranker that starts from a pre-trained encoder of BERT's architecture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import AutoModel, AutoTokenizer

from ..modeling.ending_ranker import EndingRanker


@torch.no_grad()
def start_from_encoder(ranker: EndingRanker, tokenizer: Any, encoder: str | Path) -> None:
    """
    Copy the first layers, the positions and the word vectors of an encoder into a ranker of its size.

    A word's vector is the mean of those of its pieces, reduced to `ranker_embedding_size` principal components. Words
    out of the vocabulary start as unknown.

    Args:
        ranker: The ranker, with as many heads and as large vectors as the encoder, and at most as many layers.
        tokenizer: Of the model that has the ranker.
        encoder: Directory of a model with BERT's architecture, and of its tokenizer.
    """
    bert, pieces = AutoModel.from_pretrained(encoder), AutoTokenizer.from_pretrained(encoder)
    _check_sizes(ranker, bert.config)
    embeddings = bert.embeddings
    vectors = _word_vectors(
        tokenizer, pieces, embeddings.word_embeddings.weight, ranker.word_embeddings.num_embeddings
    )
    mean = vectors.mean(dim=0)
    left, scales, right = torch.linalg.svd(vectors - mean, full_matrices=False)
    size = ranker.word_embeddings.embedding_dim
    spread = scales[:size].mean() / len(vectors) ** 0.5
    ranker.word_embeddings.weight.copy_(left[:, :size] * scales[:size] / spread)
    ranker.embedding_projection.weight.copy_(right[:size].T * spread)
    # All words are of one segment.
    ranker.embedding_projection.bias.copy_(mean + embeddings.token_type_embeddings.weight[0])
    num_positions = ranker.position_embeddings.num_embeddings
    ranker.position_embeddings.weight.copy_(embeddings.position_embeddings.weight[:num_positions])
    _copy(ranker.embedding_norm, embeddings.LayerNorm)
    for layer, source in zip(ranker.layers, bert.encoder.layer, strict=False):
        attention = source.attention
        _copy(layer.query, attention.self.query)
        _copy(layer.key, attention.self.key)
        _copy(layer.value, attention.self.value)
        _copy(layer.merge, attention.output.dense)
        _copy(layer.attention_norm, attention.output.LayerNorm)
        _copy(layer.feed_forward[0], source.intermediate.dense)
        _copy(layer.feed_forward[2], source.output.dense)
        _copy(layer.output_norm, source.output.LayerNorm)


def _check_sizes(ranker: EndingRanker, config: Any) -> None:
    expected = {
        "ranker_size": (ranker.position_embeddings.embedding_dim, config.hidden_size),
        "num_ranker_heads": (ranker.layers[0].num_heads, config.num_attention_heads),
    }
    for name, (own, other) in expected.items():
        if own != other:
            raise ValueError(f"`{name}` must be that of the encoder, {other}; got {own}.")
    if len(ranker.layers) > config.num_hidden_layers:
        raise ValueError(
            f"`num_ranker_layers` must be at most {config.num_hidden_layers}, as the encoder has; "
            f"got {len(ranker.layers)}."
        )


def _word_vectors(tokenizer: Any, pieces: Any, vectors: torch.Tensor, num_words: int) -> torch.Tensor:
    """A vector for each word of the vocabulary; what the encoder has no word for is unknown to it."""
    special = {
        tokenizer.bos_token_id: pieces.cls_token_id,
        tokenizer.eos_token_id: pieces.sep_token_id,
        tokenizer.pad_token_id: pieces.pad_token_id,
    }
    rows = vectors[pieces.unk_token_id].repeat(num_words, 1)
    for word, number in tokenizer.get_vocab().items():
        ids = [special[number]] if number in special else pieces(word, add_special_tokens=False)["input_ids"]
        if ids and number < num_words:
            rows[number] = vectors[ids].mean(dim=0)
    return rows


def _copy(target: nn.Module, source: nn.Module) -> None:
    target.load_state_dict(source.state_dict())
