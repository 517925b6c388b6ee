"""Large products on a CPU: the same numbers as a call of the module, and a call where one is needed."""

from __future__ import annotations

import pytest
import torch
from story_cases import KNOWLEDGE, as_tensors, random_stories, tiny_model
from torch import nn

from hf_storyend.modeling import cpu_products
from hf_storyend.modeling.cpu_products import add_vector_product, apply_linear, product, suits_onednn


def large_linear(num_outputs: int = 4096, bias: bool = True) -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(64, num_outputs, bias=bias)


@pytest.mark.parametrize("num_outputs", [4096, 4099])
@pytest.mark.parametrize("shape", [(1,), (5,), (129,), (1, 1), (2, 3), (4, 20), (0,)])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("has_onednn", [True, False])
def test_same_as_the_module(monkeypatch, num_outputs, shape, bias, has_onednn):
    """Also where PyTorch was built without the library that is faster."""
    monkeypatch.setattr(cpu_products, "HAS_ONEDNN", has_onednn and cpu_products.HAS_ONEDNN)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    module, inputs = large_linear(num_outputs, bias), torch.randn(*shape, 64)
    with torch.no_grad():
        outputs = apply_linear(module, inputs)
    assert outputs.shape == (*shape, num_outputs) and outputs.is_contiguous()
    torch.testing.assert_close(outputs, module(inputs))


@torch.no_grad()
@pytest.mark.parametrize("num_rows", [0, 1, 2, 7, 130])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_products(num_rows, dtype):
    """Of whole matrices, transposed ones and parts of larger ones, as backward and first sentences need them."""
    torch.manual_seed(0)
    # Small integers, of which every sum is exact, in whatever order.
    whole, rows = (torch.randint(-2, 3, shape).to(dtype) for shape in ((1024, 512), (num_rows, 512)))
    for weight in (whole, whole.T.contiguous().T, torch.cat((whole, whole), dim=1)[:, 512:]):
        for inputs in (rows, rows.T.contiguous().T, torch.cat((rows, rows), dim=1)[:, 512:]):
            torch.testing.assert_close(product(inputs, weight), rows @ whole.T)
            torch.testing.assert_close(product(inputs, weight, whole[:, 0]), rows @ whole.T + whole[:, 0])


def test_float32_is_not_rounded_to_anything_coarser():
    torch.manual_seed(0)
    inputs, weight = torch.randn(32, 1024), torch.randn(512, 1024)
    with torch.no_grad():
        error = (product(inputs, weight) - inputs.double() @ weight.double().T).abs().max()
    assert error < 512 * torch.finfo(torch.float32).eps * 10


@torch.no_grad()
@pytest.mark.skipif(not cpu_products.HAS_ONEDNN, reason="PyTorch was built without oneDNN.")
@pytest.mark.parametrize("num_rows", [2, 5, 64, 128])
def test_it_does_not_matter_where_numbers_lie_in_memory(num_rows):
    """A model just loaded then gives what the one that was saved gave, bit by bit."""
    torch.manual_seed(0)
    inputs, weight = torch.randn(num_rows, 512), torch.randn(1024, 512)
    expected = product(inputs, weight)
    for offset in range(1, 4):
        moved = [torch.cat((torch.zeros(offset), t.flatten()))[offset:].view_as(t) for t in (inputs, weight)]
        assert torch.equal(product(*moved), expected)


@pytest.mark.parametrize("num_threads", [1, 2])
@pytest.mark.parametrize("num_outputs", [4096, 4099])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_one_vector(monkeypatch, num_threads, num_outputs, dtype):
    """Also of a part of a weight, and whether or not there are threads to share it."""
    monkeypatch.setattr(torch, "get_num_threads", lambda: num_threads)
    weight, vector = large_linear(num_outputs).weight.to(dtype)[:, 32:], torch.randn(32, dtype=dtype)
    addend = torch.randn(num_outputs, dtype=dtype)
    torch.testing.assert_close(add_vector_product(addend, weight, vector), addend + weight @ vector)


@pytest.mark.skipif(not cpu_products.HAS_ONEDNN, reason="PyTorch was built without oneDNN.")
def test_when_it_is_worth_it():
    weight, rows = large_linear().weight, torch.randn(9, 64)
    assert not suits_onednn(rows, weight), "gradients"
    with torch.no_grad():
        assert suits_onednn(rows, weight) and suits_onednn(torch.randn(9, 4096), weight.T)
        assert not suits_onednn(rows, weight[:64]), "a small weight"
        assert not suits_onednn(rows[:, :32], weight[:, :32]), "parts of matrices"
        assert not suits_onednn(rows.double(), weight.double())
        assert not suits_onednn(rows.to("meta"), weight)


@pytest.mark.skipif(not cpu_products.HAS_ONEDNN, reason="PyTorch was built without oneDNN.")
@pytest.mark.parametrize("knowledge", KNOWLEDGE)
def test_all_gradients_of_a_training_step_by_onednn(monkeypatch, knowledge):
    """As large models are trained, against double precision, which is compared with the reference elsewhere."""
    batch, gradients, taken = as_tensors(random_stories(6)), [], []
    suits = cpu_products.suits_onednn
    monkeypatch.setattr(cpu_products, "_MIN_WEIGHT", 0)
    monkeypatch.setattr(cpu_products, "suits_onednn", lambda *both: taken.append(suits(*both)) or taken[-1])
    for dtype in (torch.float64, torch.float32):
        taken.clear()
        model = tiny_model(knowledge=knowledge).to(dtype).train()
        model(**batch).loss.backward()
        gradients.append({name: weight.grad for name, weight in model.named_parameters()})
        assert all(taken) == any(taken) == (dtype == torch.float32)
    for name, gradient in gradients[1].items():
        torch.testing.assert_close(gradient.double(), gradients[0][name], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("reason", ["gradients", "hook", "subclass", "replaced forward", "autocast"])
def test_the_module_is_called_where_that_matters(monkeypatch, reason):
    module, inputs, calls = large_linear(), torch.randn(1, 64), []
    for name in ("product", "add_vector_product"):
        monkeypatch.setattr(cpu_products, name, lambda *_: pytest.fail("the module was passed over"))
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
