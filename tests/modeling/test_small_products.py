"""Few rows times a large weight: the same numbers as a call of the module, and a call where one is needed."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from hf_storyend.modeling import small_products
from hf_storyend.modeling.small_products import add_vector_product, apply_linear, is_small_product, small_product


def large_linear(num_outputs: int = 4096, bias: bool = True) -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(64, num_outputs, bias=bias)


@pytest.mark.parametrize("num_outputs", [4096, 4099, 4103])
@pytest.mark.parametrize("shape", [(1,), (5,), (16,), (17,), (128,), (1, 1), (2, 3), (4, 20), (0,)])
@pytest.mark.parametrize("bias", [True, False])
def test_same_as_the_module(monkeypatch, num_outputs, shape, bias):
    """Also where the weight can't be cut into equal blocks."""
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    module, inputs = large_linear(num_outputs, bias), torch.randn(*shape, 64)
    with torch.no_grad():
        outputs = apply_linear(module, inputs)
    assert outputs.shape == (*shape, num_outputs) and outputs.is_contiguous()
    torch.testing.assert_close(outputs, module(inputs))


def test_a_part_of_a_weight():
    """As a first sentence uses it, which has no context."""
    weight, inputs = large_linear().weight[:, 32:], torch.randn(3, 32)
    torch.testing.assert_close(small_product(inputs, weight), inputs @ weight.T)


@pytest.mark.parametrize("num_threads", [1, 2])
@pytest.mark.parametrize("num_outputs", [4096, 4099])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_one_vector(monkeypatch, num_threads, num_outputs, dtype):
    """Also of a part of a weight, and whether or not there are threads to share it."""
    monkeypatch.setattr(torch, "get_num_threads", lambda: num_threads)
    weight, vector = large_linear(num_outputs).weight.to(dtype)[:, 32:], torch.randn(32, dtype=dtype)
    addend = torch.randn(num_outputs, dtype=dtype)
    torch.testing.assert_close(add_vector_product(addend, weight, vector), addend + weight @ vector)


def test_when_it_is_worth_it(monkeypatch):
    weight, rows = large_linear().weight, torch.randn(129, 64)
    for num_threads, most in ((1, 16), (2, 128)):
        monkeypatch.setattr(torch, "get_num_threads", lambda num_threads=num_threads: num_threads)
        assert is_small_product(rows[:most], weight)
        assert not is_small_product(rows[: most + 1], weight)
    assert not is_small_product(rows[:1], weight[:64]), "a small weight"
    assert not is_small_product(rows[:1].double(), weight.double())
    assert not is_small_product(rows[:1].to("meta"), weight)


@pytest.mark.parametrize("reason", ["gradients", "hook", "subclass", "replaced forward", "autocast"])
def test_the_module_is_called_where_that_matters(monkeypatch, reason):
    module, inputs, calls = large_linear(), torch.randn(1, 64), []
    for name in ("small_product", "add_vector_product"):
        monkeypatch.setattr(small_products, name, lambda *_: pytest.fail("the module was passed over"))
    if reason == "hook":
        module.register_forward_hook(lambda *_: calls.append(reason))
    elif reason == "subclass":

        class Adapter(nn.Linear):
            def forward(self, rows):
                calls.append(reason)
                return super().forward(rows)

        module.__class__ = Adapter
    elif reason == "replaced forward":
        old = module.forward
        module.forward = lambda rows: calls.append(reason) or old(rows)
    with torch.set_grad_enabled(reason == "gradients"), torch.autocast("cpu", enabled=reason == "autocast"):
        outputs = apply_linear(module, inputs)
    assert outputs.requires_grad == (reason == "gradients")
    assert (outputs.dtype == torch.bfloat16) == (reason == "autocast")
    assert calls == ([reason] if reason in ("hook", "subclass", "replaced forward") else [])
