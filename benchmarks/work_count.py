"""How much arithmetic the equations need for a batch, if nothing is done twice and nothing for padding."""

from __future__ import annotations

import torch

from hf_storyend import IncrementalEncoderConfig

# A product costs a multiplication and an addition; backward makes two products of each.
FLOPS_OF_TRAINING = 2 * 3


def training_gflops(config: IncrementalEncoderConfig, batch: dict[str, torch.Tensor]) -> float:
    """Forward and backward pass of one batch: the products, without attention weights and elementwise work."""
    size, embedding = config.hidden_size, config.embedding_size
    lengths = batch["attention_mask"].sum(dim=-1)
    num_words, num_first = int(lengths.sum()), int((lengths[:, 0] + 1).sum())
    # A step a word, and one for the start symbol of each sentence; the ending reads as many as it writes.
    num_endings = int((batch["labels"] >= 0).sum())
    num_sentence_steps = num_words + int((lengths > 0).sum())
    num_steps = num_sentence_steps + num_endings
    gates = num_steps * (embedding + 2 * size * config.num_layers) * 4 * size
    # The first sentence has no context.
    gates -= num_first * size * 4 * size
    memories = num_words * 2 * size * size
    num_predicted = num_sentence_steps - num_first + num_endings
    vocabulary = num_predicted * size * config.vocab_size
    return (gates + memories + vocabulary + _knowledge_products(config, batch)) * FLOPS_OF_TRAINING / 1e9


def _knowledge_products(config: IncrementalEncoderConfig, batch: dict[str, torch.Tensor]) -> int:
    """Products for graph vectors and for the keys and values made of them."""
    if config.knowledge is None:
        return 0
    mask = batch["triple_mask"].bool()
    num_distinct = len(torch.unique(batch["triple_ids"][mask], dim=0))
    size, embedding, graph = config.hidden_size, config.embedding_size, config.graph_size
    num_known = int(mask.any(dim=-1).sum())
    if config.knowledge == "graph_attention":
        num_known_words = len(torch.unique(batch["input_ids"][mask.any(dim=-1)]))
        return num_distinct * 3 * embedding**2 + num_known_words * 2 * graph * size
    # Two readers of three elements, each with a product for its input and, but for the first, for its state.
    readers = num_distinct * 2 * (3 + 2) * 3 * embedding**2
    return readers + num_known * (graph * size + 2 * graph * size)
