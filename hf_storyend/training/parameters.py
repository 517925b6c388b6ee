"""Weights and optimiser state as whole tensors, however they are spread over processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from accelerate import Accelerator
from accelerate.optimizer import AcceleratedOptimizer
from torch import nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)
from torch.distributed.fsdp import FSDPModule

# Every process gets the whole: the model is small beside what it is trained with.
_WHOLE = StateDictOptions(full_state_dict=True, cpu_offload=True)


def whole_weights(model: nn.Module) -> dict[str, torch.Tensor]:
    """All weights by name, on the CPU. Every process must call it; with shards, only the first gets the tensors."""
    return get_model_state_dict(model, options=_WHOLE)


def load_weights(model: nn.Module, weights: dict[str, torch.Tensor]) -> None:
    """Put whole weights into a model, in shards if it has any."""
    set_model_state_dict(model, weights, options=StateDictOptions(full_state_dict=True))


def whole_optimizer_state(model: nn.Module, optimizer: AcceleratedOptimizer) -> dict[str, torch.Tensor]:
    """The optimiser's tensors, by `parameter/name`."""
    state = get_optimizer_state_dict(model, optimizer.optimizer, options=_WHOLE).get("state", {})
    return {
        f"{parameter}/{name}": torch.as_tensor(value)
        for parameter, values in state.items()
        for name, value in values.items()
        if value is not None
    }


def load_optimizer_state(model: nn.Module, optimizer: AcceleratedOptimizer, tensors: dict[str, torch.Tensor]) -> None:
    """Put an optimiser's tensors back; rates and the like come from the options."""
    whole = get_optimizer_state_dict(model, optimizer.optimizer, options=_WHOLE)
    # Where shards are gathered only the first process has the groups; names are the same everywhere.
    state: dict[str, dict[str, torch.Tensor]] = {}
    for key, tensor in tensors.items():
        parameter, name = key.rsplit("/", 1)
        state.setdefault(parameter, {})[name] = tensor
    set_optimizer_state_dict(
        model,
        optimizer.optimizer,
        {"state": state, "param_groups": whole.get("param_groups", [])},
        options=StateDictOptions(full_state_dict=True, broadcast_from_rank0=_is_sharded(model)),
    )


@contextmanager
def usable_weights(model: nn.Module, accelerator: Accelerator) -> Iterator[nn.Module]:
    """The bare model with all of its weights at hand: `generate()` calls parts of it past the wrapper."""
    bare = accelerator.unwrap_model(model)
    if not _is_sharded(bare):
        yield bare
        return
    bare.unshard()
    try:
        yield bare
    finally:
        bare.reshard()


def _is_sharded(model: nn.Module) -> bool:
    return isinstance(model, FSDPModule)
