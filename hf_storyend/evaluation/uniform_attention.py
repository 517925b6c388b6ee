"""Uniform attention: what a model computes if it does not choose what it attends to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Literal

import torch
from torch import nn

# Keys of each source. Words are attended to by those of their sentence, too, where a system has a sentence level.
_SCORERS = {"state": ("state_scorer", "sentence_scorer"), "knowledge": ("knowledge_scorer",)}


@contextmanager
def uniform_attention(model: nn.Module, source: Literal["state", "knowledge"]) -> Iterator[None]:
    """
    Within the context, attention to a source gives the same weight to all words, or to all graphs, of a sentence.

    Scores are products of queries and keys. The keys become zero where they are made, which the fused recurrence and
    the eager one both start from.

    Args:
        model: The model, unwrapped.
        source: `"state"`: attention to hidden states, of sentences and of words; `"knowledge"`: to graph vectors.
    """
    scorers = [module for name, module in model.named_modules() if name.rpartition(".")[2] in _SCORERS[source]]
    if not scorers:
        raise ValueError(f"`model` has no {source} attention.")
    with ExitStack() as stack:
        for scorer in scorers:
            stack.callback(scorer.register_forward_hook(_zeros).remove)
        yield


def _zeros(module: nn.Module, arguments: tuple[torch.Tensor, ...], keys: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(keys)
