"""
A device that is not there: its tensors lie on the CPU but count as away from it.

Operations between tensors of both fail, as they would on a GPU, and whatever a GPU would have to be waited for is
counted: numbers that the program asks for (`item`), sizes that depend on values (`nonzero`, `unique`, masks as index)
and copies to the host. Times mean nothing here.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

# A device type that autograd asks nothing of.
DEVICE = torch.device("lazy:0")
_WAITING = {"_local_scalar_dense", "nonzero", "masked_select", "_unique2", "unique_dim", "equal", "is_nonzero"}
_INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_"}
_COPYING = {"_to_copy", "copy_"}


class AwayTensor(torch.Tensor):
    """A tensor of the device; `stored` has its numbers."""

    @staticmethod
    def __new__(cls, stored: torch.Tensor) -> AwayTensor:
        return torch.Tensor._make_wrapper_subclass(
            cls, stored.shape, strides=stored.stride(), dtype=stored.dtype, device=DEVICE
        )

    def __init__(self, stored: torch.Tensor):
        self.stored = stored

    @classmethod
    def __torch_dispatch__(
        cls, operation: Any, types: Any, arguments: tuple = (), named: dict[str, Any] | None = None
    ) -> Any:
        # Without a `PretendDevice`, as when a tensor is printed.
        return _run(operation, arguments, named or {})


class PretendDevice(TorchDispatchMode):
    """
    While it is entered, tensors can be made on `DEVICE`.

    Attributes:
        waits: How often each operation made the host wait.
    """

    def __init__(self) -> None:
        super().__init__()
        self.waits: Counter[str] = Counter()

    def __torch_dispatch__(
        self, operation: Any, types: Any, arguments: tuple = (), named: dict[str, Any] | None = None
    ) -> Any:
        named = named or {}
        if _waits(operation, arguments, named):
            self.waits[operation.overloadpacket.__name__] += 1
        return _run(operation, arguments, named)


def _run(operation: Any, arguments: tuple, named: dict[str, Any]) -> Any:
    name, leaves = operation.overloadpacket.__name__, tree_leaves((arguments, named))
    if name == "squeeze_":
        # The shape of these tensors is fixed; autograd, which asks for it, sums that dimension later.
        return arguments[0]
    away = [tensor for tensor in leaves if isinstance(tensor, AwayTensor)]
    here = [leaf for leaf in leaves if type(leaf) in (torch.Tensor, nn.Parameter) and leaf.ndim]
    if away and here and name not in _COPYING:
        raise RuntimeError(f"`{name}` has tensors of two devices, of shapes {[tuple(t.shape) for t in away + here]}.")
    is_away = bool(away)
    if named.get("device") is not None:
        is_away = torch.device(named["device"]).type == DEVICE.type
        named = {**named, "device": torch.device("cpu")}
    result = operation(*tree_map(_stored, arguments), **tree_map(_stored, named))
    if name == "copy_":
        return arguments[0]
    if not is_away:
        return result
    if operation._schema.is_mutable and result is not None and isinstance(arguments[0], AwayTensor):
        outputs = tree_leaves(result)
        if len(outputs) == 1 and outputs[0] is arguments[0].stored:
            return arguments[0]
    return tree_map(lambda leaf: AwayTensor(leaf) if isinstance(leaf, torch.Tensor) else leaf, result)


def _stored(leaf: Any) -> Any:
    return leaf.stored if isinstance(leaf, AwayTensor) else leaf


def _waits(operation: Any, arguments: tuple, named: dict[str, Any]) -> bool:
    name, leaves = operation.overloadpacket.__name__, tree_leaves((arguments, named))
    if not any(isinstance(leaf, AwayTensor) for leaf in leaves):
        return False
    if name in _COPYING:
        target = arguments[0] if name == "copy_" else named.get("device") or DEVICE
        source = arguments[1] if name == "copy_" else arguments[0]
        is_to_host = not isinstance(target, AwayTensor) and torch.device(getattr(target, "device", target)) != DEVICE
        return isinstance(source, AwayTensor) and is_to_host
    if name in _INDEXING:
        return any(index is not None and index.dtype == torch.bool for index in arguments[1])
    return name in _WAITING or (name == "repeat_interleave" and operation._overloadname == "Tensor")


def on_device(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: AwayTensor(tensor) for name, tensor in tensors.items()}


def move(model: nn.Module) -> nn.Module:
    """Put all weights on the device; tied ones stay tied."""
    moved: dict[nn.Parameter, nn.Parameter] = {}
    for module in model.modules():
        for name, weight in module._parameters.items():
            if weight is not None:
                moved.setdefault(weight, nn.Parameter(AwayTensor(weight.detach())))
                module._parameters[name] = moved[weight]
    return model


@contextmanager
def pretend_device() -> Iterator[PretendDevice]:
    """Enter a `PretendDevice` on which fast paths are taken."""

    def is_unmodified(module: nn.Module, expected: type[nn.Module]) -> bool:
        # Weights of the device are of a class of their own.
        return type(module) is expected

    with ExitStack() as stack:
        for module in ("fused_recurrence", "losses"):
            stack.enter_context(mock.patch(f"hf_storyend.modeling.{module}.is_unmodified", is_unmodified))
        # Autocast knows real devices only.
        stack.enter_context(mock.patch("torch.is_autocast_enabled", lambda device: False))
        yield stack.enter_context(PretendDevice())


def count_host_waits(model: nn.Module, batch: dict[str, torch.Tensor]) -> int:
    """How often forward and backward of a batch wait for the device. The model itself is left as it is."""
    with pretend_device() as device:
        move(copy.deepcopy(model))(**on_device(batch)).loss.backward()
    return device.waits.total()
