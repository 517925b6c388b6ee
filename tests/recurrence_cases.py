"""Sentences for the tests of the eager and the fused recurrence."""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from story_cases import tiny_config
from torch import nn

from hf_storyend.modeling.modeling_incremental_encoder import AttentionMemory, IncrementalEncoder

EXACT = {"rtol": 1e-9, "atol": 1e-9}


@dataclass
class Case:
    """The inputs of a recurrence, and every tensor that gradients flow into."""

    encoder: IncrementalEncoder
    word_vectors: torch.Tensor
    state: list
    memory: AttentionMemory | None
    step_mask: torch.Tensor | None

    @property
    def leaves(self) -> dict[str, torch.Tensor]:
        leaves = {"word vectors": self.word_vectors}
        for layer, (hidden, cell) in enumerate(self.state):
            leaves |= {f"hidden {layer}": hidden, f"cell {layer}": cell}
        if self.memory is not None:
            tensors = {item.name: getattr(self.memory, item.name) for item in fields(self.memory)}
            leaves |= {name: tensor for name, tensor in tensors.items() if tensor is not None and tensor.requires_grad}
            leaves["attention.merge.weight"] = self.encoder.attention.merge.weight
            leaves["attention.merge.bias"] = self.encoder.attention.merge.bias
        return leaves | {f"lstm.{name}": weight for name, weight in self.encoder.lstm.named_parameters()}

    def run(self, recurrence):
        encoder = self.encoder
        return recurrence(encoder.lstm, encoder.attention, self.word_vectors, self.state, self.memory, self.step_mask)


def make_case(
    seed=0, lengths=(4, 0, 2, 4), num_steps=5, num_layers=2, memory_lengths=(3, 2, 0, 1), num_sources=2,
    dtype=torch.float64, **config,
) -> Case:  # fmt: skip
    """Rows of the given numbers of steps; `lengths` None means no mask, `memory_lengths` None no memory."""
    generator = torch.Generator().manual_seed(seed)

    def leaf(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()

    torch.manual_seed(seed)
    knowledge = "graph_attention" if num_sources == 2 else None
    encoder = IncrementalEncoder(tiny_config(num_layers=num_layers, knowledge=knowledge, **config)).to(dtype)
    nn.init.normal_(encoder.attention.merge.bias)
    batch_size, size = len(lengths or memory_lengths or (0,) * 3), encoder.config.hidden_size
    memory = None
    if memory_lengths is not None:
        mask = torch.arange(4) < torch.tensor(memory_lengths).unsqueeze(1)
        memory = AttentionMemory(leaf(batch_size, 4, size), leaf(batch_size, 4, size), mask)
    if memory is not None and num_sources == 2:
        memory.graph_vectors = leaf(batch_size, 4, encoder.config.graph_size)
        memory.knowledge_keys = leaf(batch_size, 4, size)
        memory.graph_mask = mask.clone()
        # A sentence without any graph, and one that has some.
        memory.graph_mask[:1] = False
        memory.graph_mask[1:2, 0] = False
    return Case(
        encoder,
        word_vectors=leaf(batch_size, num_steps, encoder.config.embedding_size),
        state=[(leaf(batch_size, size), leaf(batch_size, size)) for _ in range(num_layers)],
        memory=memory,
        step_mask=None if lengths is None else torch.arange(num_steps) < torch.tensor(lengths).unsqueeze(1),
    )
