"""The fast path of the recurrence against the plain loop: everything it gives, and every gradient."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reading_cases import EXACT, Case, make_case
from story_cases import as_tensors, random_stories, tiny_model
from torch import nn

from hf_storyend.modeling.fused_reading import can_read_fused, pack_steps, read_fused
from hf_storyend.modeling.stepwise_reading import read_step_by_step
from hf_storyend.modeling.story_encoder import IncrementalStoryEncoder

USES = [
    "everything",
    "states of the top",
    "states of the lowest",
    "last hidden",
    "last cell",
    "last state of the lowest",
]


def loss_of(reading, uses: str) -> torch.Tensor:
    """Some of what was read, each number with a weight of its own."""
    layer_states, state, _ = reading
    used = {
        "everything": [*layer_states, *(tensor for pair in state for tensor in pair)],
        "states of the top": layer_states[-1:],
        "states of the lowest": layer_states[:1],
        "last hidden": [hidden for hidden, _ in state],
        "last cell": [cell for _, cell in state],
        "last state of the lowest": list(state[0]),
    }[uses]
    return sum((tensor * torch.arange(1, tensor.numel() + 1).view_as(tensor).cos()).sum() for tensor in used)


def gradients(case: Case, recurrence, uses="everything", scale=1.0) -> dict[str, torch.Tensor | None]:
    leaves = case.leaves
    loss = scale * loss_of(case.read(recurrence), uses)
    return dict(zip(leaves, torch.autograd.grad(loss, list(leaves.values()), allow_unused=True), strict=True))


def assert_same_gradients(actual, expected, **tolerance):
    for name, gradient in expected.items():
        # Where the plain loop never came to something, the fast path may say zero.
        gradient = torch.zeros_like(actual[name]) if gradient is None else gradient
        torch.testing.assert_close(
            actual[name], gradient, **(tolerance or EXACT), msg=lambda text, name=name: f"{name}: {text}"
        )


def assert_same(case: Case, uses="everything", scale=1.0):
    (states, state, attention), (expected_states, expected_state, expected_attention) = (
        case.read(recurrence) for recurrence in (read_fused, read_step_by_step)
    )
    torch.testing.assert_close(states, expected_states, **EXACT)
    torch.testing.assert_close(state, expected_state, **EXACT)
    torch.testing.assert_close(attention, expected_attention, **EXACT)
    assert_same_gradients(gradients(case, read_fused, uses, scale), gradients(case, read_step_by_step, uses, scale))


@st.composite
def cases(draw) -> Case:
    num_rows, num_steps = draw(st.integers(1, 5)), draw(st.integers(1, 6))

    def lengths_up_to(limit: int):
        return st.none() | st.lists(st.integers(0, limit), min_size=num_rows, max_size=num_rows)

    return make_case(
        seed=draw(st.integers(0, 10**6)),
        lengths=draw(lengths_up_to(num_steps)),
        num_steps=num_steps,
        num_layers=draw(st.integers(1, 3)),
        memory_lengths=draw(lengths_up_to(4)),
        num_sources=draw(st.sampled_from([1, 2])),
    )


@settings(max_examples=150, deadline=None, derandomize=True)
@given(case=cases(), uses=st.sampled_from(USES), scale=st.sampled_from([1.0, 3.0]))
def test_same_as_the_plain_loop(case, uses, scale):
    assert_same(case, uses, scale)


@pytest.mark.parametrize("num_layers", [1, 2, 3])
@pytest.mark.parametrize(
    "sizes",
    [
        {"lengths": (4, 0, 2, 4)},
        {"lengths": (0, 0, 0, 0)},
        {"lengths": (1, 1, 1, 1), "num_steps": 1},
        {"lengths": (3, 3, 2, 1), "num_steps": 6},
        {"lengths": None},
        {"lengths": (3,), "memory_lengths": (2,)},
        {"memory_lengths": (0, 0, 0, 0)},
        {"memory_lengths": None},
        {"num_sources": 1},
    ],
    ids=[
        "empty row",
        "all rows empty",
        "one step",
        "steps in no row",
        "no mask",
        "one row",
        "empty memory",
        "none",
        "IE",
    ],
)
@pytest.mark.parametrize("uses", USES)
def test_corners(num_layers, sizes, uses):
    assert_same(make_case(num_layers=num_layers, **sizes), uses)


def test_what_is_behind_the_end_of_a_row_is_its_last_state():
    case = make_case(lengths=(4, 0, 2, 4))
    states, state, attention = case.read(read_fused)
    for layer in range(2):
        assert torch.equal(states[layer][2, 2:], states[layer][2, 1].expand(3, -1))
        assert torch.equal(states[layer][1], case.state[layer][0][1].expand(5, -1))
        assert torch.equal(states[layer][:, -1], state[layer][0])
    assert (attention[2, 2:] == 0).all() and (attention[1] == 0).all()


def test_weights_are_zero_without_memory():
    """The row with an empty memory reads as if there were none, whatever stands in its keys and values."""
    case = make_case(memory_lengths=(3, 2, 0, 1))
    states, _, attention = case.read(read_fused)
    assert (attention[2] == 0).all()
    sums = attention.sum(-1)
    torch.testing.assert_close(sums[0, :4], torch.tensor([[1.0, 0.0]], dtype=torch.float64).expand(4, 2))
    torch.testing.assert_close(sums[3, :4], torch.ones(4, 2, dtype=torch.float64))
    with torch.no_grad():
        case.memory.keys[2] += 1e3
        case.memory.values[2] += 1e3
    torch.testing.assert_close(case.read(read_fused)[0], states)


def test_attention_passes_no_gradient():
    assert not make_case().read(read_fused)[2].requires_grad


def test_gradients_against_differences():
    case = make_case(lengths=(2, 0, 1), memory_lengths=(2, 1, 0), num_steps=2, hidden_size=2, embedding_size=2)
    leaves = list(case.leaves.values())

    def outputs(*_):
        states, state, _ = case.read(read_fused)
        return *states, *(tensor for pair in state for tensor in pair)

    assert torch.autograd.gradcheck(outputs, leaves)


def test_gradients_under_dropout_against_differences():
    case = make_case(
        lengths=(2, 0, 1), memory_lengths=(2, 1, 0), num_steps=2, num_layers=3, hidden_size=2, embedding_size=2,
        dropout=0.4,
    )  # fmt: skip

    def outputs(*_):
        torch.manual_seed(0)
        return tuple(case.read(read_fused)[0])

    assert torch.autograd.gradcheck(outputs, list(case.leaves.values()))


def test_dropout_is_on_the_way_up_only():
    """The lowest layer loses nothing; the one on top loses its input at the wanted rate, or gets more of it."""
    case = make_case(lengths=None, num_steps=1, memory_lengths=(3,) * 6000, hidden_size=1, dropout=0.25)
    lstm = case.encoder.lstm
    # So that dropout on words changes nothing.
    lstm.word_gates.weight.data.zero_()
    (lowest, top), _, _ = case.read(read_fused)
    lstm.eval()
    torch.testing.assert_close(lowest, case.read(read_fused)[0][0])
    from_below = lstm.step_gates[1].weight.data[:, :1]
    from_below /= 0.75
    kept = case.read(read_fused)[0][1]
    from_below.zero_()
    dropped = case.read(read_fused)[0][1]
    is_dropped = torch.isclose(top, dropped, **EXACT)
    torch.testing.assert_close(top, torch.where(is_dropped, dropped, kept))
    assert float(is_dropped.double().mean()) == pytest.approx(0.25, abs=0.03)


def test_dropout_is_off_in_evaluation():
    case = make_case(dropout=0.5)
    case.encoder.eval()
    assert_same(case)
    case.encoder.train()
    assert not torch.equal(case.read(read_fused)[0][-1], case.read(read_fused)[0][-1])


def test_gradients_can_be_made_twice():
    """As with `retain_graph=True`: backward leaves what forward kept as it was."""
    case = make_case()
    leaves, loss = list(case.leaves.values()), loss_of(case.read(read_fused), "everything")
    first = torch.autograd.grad(loss, leaves, retain_graph=True)
    torch.testing.assert_close(torch.autograd.grad(loss, leaves), first, rtol=0, atol=0)


def test_without_gradients():
    case = make_case()
    with torch.no_grad():
        states, _, _ = case.read(read_fused)
    torch.testing.assert_close(states, case.read(read_step_by_step)[0], **EXACT)
    assert not states[0].requires_grad


def test_frozen_weights():
    case = make_case()
    expected = gradients(case, read_step_by_step)["word vectors"]
    case.encoder.requires_grad_(False)
    (gradient,) = torch.autograd.grad(loss_of(case.read(read_fused), "everything"), [case.word_vectors])
    torch.testing.assert_close(gradient, expected, **EXACT)


@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 1e-4), (torch.bfloat16, 0.1), (torch.float16, 0.02)])
def test_other_precisions(dtype, tolerance):
    case, exact = make_case(dtype=dtype), make_case()
    states, state, _ = case.read(read_fused)
    assert {tensor.dtype for tensor in (*states, *state[0])} == {dtype}
    torch.testing.assert_close(
        [tensor.double() for tensor in states], exact.read(read_step_by_step)[0], rtol=tolerance, atol=tolerance
    )
    for name, gradient in gradients(case, read_fused, "states of the top").items():
        expected = gradients(exact, read_step_by_step, "states of the top")[name]
        assert gradient.dtype == dtype
        scale = float(expected.abs().max())
        torch.testing.assert_close(gradient.double(), expected, rtol=tolerance, atol=3 * tolerance * scale)


def test_autocast():
    """Parameters stay in float32, products are made in bfloat16, gradients come back in float32."""
    case, exact = make_case(dtype=torch.float32), make_case()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        states, _, _ = case.read(read_fused)
    assert states[-1].dtype == torch.bfloat16
    torch.testing.assert_close(states[-1].double(), exact.read(read_step_by_step)[0][-1], rtol=0.1, atol=0.1)
    states[-1].float().sum().backward()
    assert case.encoder.lstm.step_gates[0].weight.grad.dtype == torch.float32


def test_where_weights_lie_in_memory_does_not_matter():
    """As after loading a file: the same numbers at other addresses give the same bits, down to the last row left."""
    case = make_case(lengths=(5, 3, 2, 3), dtype=torch.float32)
    expected = case.read(read_fused)[0]
    for gates in case.encoder.lstm.step_gates:
        room = torch.empty(gates.weight.numel() + 1)
        gates.weight.data = room[1:].view_as(gates.weight).copy_(gates.weight.data)
    assert all(map(torch.equal, case.read(read_fused)[0], expected))


def test_packing():
    mask = torch.tensor([[1, 0, 0, 0], [0, 0, 0, 0], [1, 1, 1, 0]], dtype=torch.bool)
    packing = pack_steps(3, 4, mask, mask.device)
    assert packing.counts == [2, 1, 1]
    assert packing.order.tolist() == [2, 0, 1]
    assert packing.word_index.tolist() == [8, 0, 9, 10]
    assert packing.before_index.tolist() == [0, 1, 3, 5]
    assert packing.state_index.view(3, 4).tolist() == [[4, 4, 4, 4], [2, 2, 2, 2], [3, 5, 6, 6]]


WORDS = torch.zeros(2, 3, dtype=torch.long)


def test_when_the_fast_path_is_taken():
    encoder = make_case().encoder
    parts = encoder.lstm, encoder.attention
    assert can_read_fused(*parts, WORDS)
    assert not can_read_fused(*parts, WORDS[:, :1]), "a step of generation"
    assert not can_read_fused(*parts, WORDS.to("meta"))


@pytest.mark.parametrize("knowledge", ["graph_attention", "contextual_attention"])
@pytest.mark.parametrize(
    "place", ["lstm.step_gates.1", "attention.merge", "attention.state_scorer", "knowledge.memory_scorer"]
)
def test_what_acts_on_a_call_is_not_passed_over(place, knowledge):
    """An adapter or a hook on a module whose weights a fast path would use has its say in the result."""
    batch, model = as_tensors(random_stories(0)), tiny_model(knowledge=knowledge)
    if place == "knowledge.memory_scorer" and knowledge == "graph_attention":
        pytest.skip("graph attention has none")
    module, expected = model.encoder.get_submodule(place), model(**batch).logits

    class Adapter(nn.Linear):
        def forward(self, inputs):
            return super().forward(inputs) + inputs.square().sum(-1, keepdim=True)

    hook = module.register_forward_hook(lambda module, inputs, out: out + inputs[0].square().sum(-1, keepdim=True))
    hooked = model(**batch).logits
    hook.remove()
    assert torch.equal(model(**batch).logits, expected)
    assert not torch.allclose(hooked, expected)
    module.__class__ = Adapter
    torch.testing.assert_close(model(**batch).logits, hooked)


def test_an_adapter_on_the_merge_acts_at_every_step():
    """It sees both reads side by side, as `merge` in the equations does."""
    batch, model = as_tensors(random_stories(0)), tiny_model()
    expected, merge = model(**batch).logits, model.encoder.attention.merge
    merge.register_forward_hook(lambda module, inputs, output: output)
    torch.testing.assert_close(model(**batch).logits, expected)
    hidden = model.config.hidden_size
    seen = []
    merge.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    model(**batch)
    assert {read.shape[-1] for read in seen} == {hidden + model.config.graph_size}


def test_a_whole_story_takes_the_fast_path(monkeypatch):
    batch, model, taken = as_tensors(random_stories(0)), tiny_model(), []
    monkeypatch.setitem(
        IncrementalStoryEncoder.read.__globals__, "read_fused", lambda *args: taken.append(1) or read_fused(*args)
    )
    model(**batch)
    assert len(taken) == batch["input_ids"].shape[1] + 1, "each sentence, and the ending"
