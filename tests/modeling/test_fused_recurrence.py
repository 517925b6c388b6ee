"""The fused recurrence against the eager one: all results and every gradient, and the guard that chooses."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from recurrence_cases import EXACT, Case, make_case
from story_cases import as_tensors, batch_for, context_of, random_stories, tiny_model, tiny_system
from torch import nn
from torch.nn.utils import parametrize

from hf_storyend.modeling import modeling_incremental_encoder
from hf_storyend.modeling.fused_recurrence import can_fuse, fold_memory, fused_recurrence, pack_steps
from hf_storyend.modeling.modeling_incremental_encoder import eager_recurrence
from hf_storyend.systems import SYSTEMS

USES = [
    "everything",
    "states of the top",
    "states of the lowest",
    "last hidden",
    "last cell",
    "last state of the lowest",
]


def loss_of(results, uses: str) -> torch.Tensor:
    """A loss of some of the results, each number with a weight of its own."""
    layer_states, state, _ = results
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
    loss = scale * loss_of(case.run(recurrence), uses)
    return dict(zip(leaves, torch.autograd.grad(loss, list(leaves.values()), allow_unused=True), strict=True))


def assert_same_gradients(actual, expected, **tolerance):
    for name, gradient in expected.items():
        # What the eager loop never used has no gradient; the fused one may say zero.
        gradient = torch.zeros_like(actual[name]) if gradient is None else gradient
        torch.testing.assert_close(
            actual[name], gradient, **(tolerance or EXACT), msg=lambda text, name=name: f"{name}: {text}"
        )


def assert_same(case: Case, uses="everything", scale=1.0):
    (states, state, attention), (expected_states, expected_state, expected_attention) = (
        case.run(recurrence) for recurrence in (fused_recurrence, eager_recurrence)
    )
    torch.testing.assert_close(states, expected_states, **EXACT)
    torch.testing.assert_close(state, expected_state, **EXACT)
    torch.testing.assert_close(attention, expected_attention, **EXACT)
    assert_same_gradients(
        gradients(case, fused_recurrence, uses, scale), gradients(case, eager_recurrence, uses, scale)
    )


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


@settings(max_examples=100, derandomize=True)
@given(case=cases(), uses=st.sampled_from(USES), scale=st.sampled_from([1.0, 3.0]))
def test_same_as_the_eager_recurrence(case, uses, scale):
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
    states, state, attention = case.run(fused_recurrence)
    for layer in range(2):
        assert torch.equal(states[layer][2, 2:], states[layer][2, 1].expand(3, -1))
        assert torch.equal(states[layer][1], case.state[layer][0][1].expand(5, -1))
        assert torch.equal(states[layer][:, -1], state[layer][0])
    assert (attention[2, 2:] == 0).all() and (attention[1] == 0).all()


def test_attention_is_zero_without_memory():
    """A row with an empty memory has no context, whatever its keys and values are."""
    case = make_case(memory_lengths=(3, 2, 0, 1))
    states, _, attention = case.run(fused_recurrence)
    assert (attention[2] == 0).all()
    sums = attention.sum(-1)
    torch.testing.assert_close(sums[0, :4], torch.tensor([[1.0, 0.0]], dtype=torch.float64).expand(4, 2))
    torch.testing.assert_close(sums[3, :4], torch.ones(4, 2, dtype=torch.float64))
    with torch.no_grad():
        for tensor in (case.memory.states, case.memory.state_keys, case.memory.graph_vectors):
            tensor[2] += 1e3
    torch.testing.assert_close(case.run(fused_recurrence)[0], states)


def test_attention_passes_no_gradient():
    assert not make_case().run(fused_recurrence)[2].requires_grad


def test_gradients_against_differences():
    case = make_case(lengths=(2, 0, 1), memory_lengths=(2, 1, 0), num_steps=2, hidden_size=2, embedding_size=2)
    leaves = list(case.leaves.values())

    def outputs(*_):
        states, state, _ = case.run(fused_recurrence)
        return *states, *(tensor for pair in state for tensor in pair)

    assert torch.autograd.gradcheck(outputs, leaves)


def test_gradients_under_dropout_against_differences():
    case = make_case(
        lengths=(2, 0, 1), memory_lengths=(2, 1, 0), num_steps=2, num_layers=3, hidden_size=2, embedding_size=2,
        dropout=0.4,
    )  # fmt: skip

    def outputs(*_):
        torch.manual_seed(0)
        return tuple(case.run(fused_recurrence)[0])

    assert torch.autograd.gradcheck(outputs, list(case.leaves.values()))


def test_dropout_is_on_the_way_up_only():
    """The lowest layer loses nothing; the one on top loses its input at the wanted rate, or gets more of it."""
    case = make_case(lengths=None, num_steps=1, memory_lengths=(3,) * 6000, hidden_size=1, dropout=0.25)
    lstm = case.encoder.lstm
    # So that dropout on words changes nothing.
    lstm.word_gates.weight.data.zero_()
    (lowest, top), _, _ = case.run(fused_recurrence)
    lstm.eval()
    torch.testing.assert_close(lowest, case.run(fused_recurrence)[0][0])
    from_below = lstm.step_gates[1].weight.data[:, :1]
    from_below /= 0.75
    kept = case.run(fused_recurrence)[0][1]
    from_below.zero_()
    dropped = case.run(fused_recurrence)[0][1]
    is_dropped = torch.isclose(top, dropped, **EXACT)
    torch.testing.assert_close(top, torch.where(is_dropped, dropped, kept))
    assert float(is_dropped.double().mean()) == pytest.approx(0.25, abs=0.03)


def test_dropout_is_off_in_evaluation():
    case = make_case(dropout=0.5)
    case.encoder.eval()
    assert_same(case)
    case.encoder.train()
    assert not torch.equal(case.run(fused_recurrence)[0][-1], case.run(fused_recurrence)[0][-1])


def test_gradients_can_be_made_twice():
    """As with `retain_graph=True`: backward leaves what forward kept as it was."""
    case = make_case()
    leaves, loss = list(case.leaves.values()), loss_of(case.run(fused_recurrence), "everything")
    first = torch.autograd.grad(loss, leaves, retain_graph=True)
    torch.testing.assert_close(torch.autograd.grad(loss, leaves), first, rtol=0, atol=0)


def test_without_gradients():
    case = make_case()
    with torch.no_grad():
        states, _, _ = case.run(fused_recurrence)
    torch.testing.assert_close(states, case.run(eager_recurrence)[0], **EXACT)
    assert not states[0].requires_grad


def test_frozen_weights():
    case = make_case()
    expected = gradients(case, eager_recurrence)["word vectors"]
    case.encoder.requires_grad_(False)
    (gradient,) = torch.autograd.grad(loss_of(case.run(fused_recurrence), "everything"), [case.word_vectors])
    torch.testing.assert_close(gradient, expected, **EXACT)


@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 1e-4), (torch.bfloat16, 0.1), (torch.float16, 0.02)])
def test_other_precisions(dtype, tolerance):
    case, exact = make_case(dtype=dtype), make_case()
    states, state, _ = case.run(fused_recurrence)
    assert {tensor.dtype for tensor in (*states, *state[0])} == {dtype}
    torch.testing.assert_close(
        [tensor.double() for tensor in states], exact.run(eager_recurrence)[0], rtol=tolerance, atol=tolerance
    )
    for name, gradient in gradients(case, fused_recurrence, "states of the top").items():
        expected = gradients(exact, eager_recurrence, "states of the top")[name]
        assert gradient.dtype == dtype
        scale = float(expected.abs().max())
        torch.testing.assert_close(gradient.double(), expected, rtol=tolerance, atol=3 * tolerance * scale)


def test_autocast():
    """Parameters stay in float32, products are made in bfloat16, gradients come back in float32."""
    case, exact = make_case(dtype=torch.float32), make_case()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        states, _, _ = case.run(fused_recurrence)
    assert states[-1].dtype == torch.bfloat16
    torch.testing.assert_close(states[-1].double(), exact.run(eager_recurrence)[0][-1], rtol=0.1, atol=0.1)
    states[-1].float().sum().backward()
    assert case.encoder.lstm.step_gates[0].weight.grad.dtype == torch.float32


def test_where_weights_lie_in_memory_does_not_matter():
    """As after loading a file: the same numbers at other addresses give the same bits, down to the last row left."""
    case = make_case(lengths=(5, 3, 2, 3), dtype=torch.float32)
    expected = case.run(fused_recurrence)[0]
    for gates in case.encoder.lstm.step_gates:
        room = torch.empty(gates.weight.numel() + 1)
        gates.weight.data = room[1:].view_as(gates.weight).copy_(gates.weight.data)
    assert all(map(torch.equal, case.run(fused_recurrence)[0], expected))


def test_packing():
    mask = torch.tensor([[1, 0, 0, 0], [0, 0, 0, 0], [1, 1, 1, 0]], dtype=torch.bool)
    packing = pack_steps(3, 4, mask, mask.device)
    assert packing.counts == [2, 1, 1]
    assert packing.order.tolist() == [2, 0, 1]
    assert packing.word_index.tolist() == [8, 0, 9, 10]
    assert packing.before_index.tolist() == [0, 1, 3, 5]
    assert packing.state_index.view(3, 4).tolist() == [[4, 4, 4, 4], [2, 2, 2, 2], [3, 5, 6, 6]]


def test_folding_applies_the_output_projection_to_the_values():
    """The weighted sum of folded values is W_l [c_h ; c_x]."""
    case = make_case(lengths=None)
    attention, memory = case.encoder.attention, case.memory
    mask, keys, values = fold_memory(attention, memory)
    assert mask.shape == (4, 2, 4) and keys.shape == values.shape == (4, 8, attention.hidden_size)
    weights = torch.rand(4, 3, 8, dtype=torch.float64)
    expected = attention.read(weights[..., :4], weights[..., 4:], memory)
    torch.testing.assert_close(weights @ values + attention.merge.bias, expected, **EXACT)
    queries = torch.randn(4, 3, attention.hidden_size, dtype=torch.float64)
    torch.testing.assert_close(queries @ keys.mT, torch.cat(attention.score(queries, memory), dim=2), **EXACT)


every_system = pytest.mark.parametrize("name", SYSTEMS)


@every_system
@pytest.mark.parametrize("vector", ["state", "attentional"])
@pytest.mark.parametrize("is_training", [True, False])
def test_both_implementations_of_every_system_agree(name, vector, is_training):
    """Outputs, attentions, losses and the gradients of all weights."""
    batch, results = batch_for(name, seed=6, num_stories=4), []
    for implementation in ("fused", "eager"):
        model = tiny_system(name, recurrence_implementation=implementation, prediction_vector=vector)
        output = model.train(is_training)(**batch, output_attentions=True, output_hidden_states=True)
        output.loss.backward()
        results.append((output, {key: weight.grad for key, weight in model.named_parameters()}))
    (fused, fused_gradients), (eager, eager_gradients) = results
    names = [key for key in eager if key != "past_key_values"]
    assert list(fused) == list(eager)
    for key in names:
        torch.testing.assert_close(fused[key], eager[key], **EXACT, msg=lambda text, key=key: f"{key}: {text}")
    torch.testing.assert_close(fused.past_key_values.hidden, eager.past_key_values.hidden, **EXACT)
    torch.testing.assert_close(fused_gradients, eager_gradients, **EXACT)


@every_system
def test_both_implementations_generate_the_same(name):
    batch, endings = context_of(batch_for(name, seed=7)), []
    for implementation in ("fused", "eager"):
        model = tiny_system(name, recurrence_implementation=implementation)
        endings.append(model.generate(**batch, num_beams=2, max_new_tokens=6))
    assert torch.equal(*endings)


@pytest.fixture
def calls(monkeypatch) -> list[str]:
    """Which recurrences are run."""
    made = []
    for name in ("fused_recurrence", "eager_recurrence"):
        function = getattr(modeling_incremental_encoder, name)
        monkeypatch.setattr(
            modeling_incremental_encoder, name, lambda *args, n=name, f=function: made.append(n) or f(*args)
        )
    return made


def test_a_whole_story_is_fused_unless_eager_is_asked_for(calls):
    batch = as_tensors(random_stories(0))
    num_sentences = batch["input_ids"].shape[1]
    tiny_model()(**batch)
    assert calls == ["fused_recurrence"] * (num_sentences + 1), "each sentence, and the ending"
    calls.clear()
    tiny_model(recurrence_implementation="eager")(**batch)
    assert calls == ["eager_recurrence"] * (num_sentences + 1)


def test_an_unknown_implementation_is_refused():
    with pytest.raises(ValueError, match="`recurrence_implementation` must be one of 'fused', 'eager'"):
        tiny_model(recurrence_implementation="flash")


WORDS = torch.zeros(2, 3, 5)


class Adapter(nn.Module):
    """As LoRA: another module in the place of a linear map, which it calls."""

    def __init__(self, base: nn.Module):
        super().__init__()
        self.base, self.weight, self.bias = base, base.weight, base.bias

    def forward(self, inputs):
        return self.base(inputs) + inputs.square().sum(-1, keepdim=True)


class SubclassedLinear(nn.Linear):
    def forward(self, inputs):
        return super().forward(inputs) + inputs.square().sum(-1, keepdim=True)


class QuantisedWeight(torch.Tensor):
    """As torchao's: a tensor subclass in the place of the parameter's data."""


def add_hook(model, module, path):
    module.register_forward_hook(lambda module, inputs, out: out + inputs[0].square().sum(-1, keepdim=True))


def add_pre_hook(model, module, path):
    module.register_forward_pre_hook(lambda module, inputs: (inputs[0] + 1,))


def replace_module(model, module, path):
    model.set_submodule(path, Adapter(module))


def replace_class(model, module, path):
    module.__class__ = SubclassedLinear


def replace_forward(model, module, path):
    forward = module.forward
    module.forward = lambda inputs: forward(inputs) + 1


def quantise(model, module, path):
    module.weight = nn.Parameter(module.weight.detach().as_subclass(QuantisedWeight), requires_grad=False)


class Halved(nn.Module):
    def forward(self, weight):
        return weight / 2


def parametrise(model, module, path):
    parametrize.register_parametrization(module, "weight", Halved())


CHANGES = [add_hook, add_pre_hook, replace_module, replace_class, replace_forward, quantise, parametrise]


def test_the_guard():
    encoder = make_case().encoder
    parts = encoder.lstm, encoder.attention
    assert can_fuse(*parts, WORDS) and can_fuse(encoder.lstm, None, WORDS)
    assert not can_fuse(*parts, WORDS[:, :1]), "a step of generation"
    assert not can_fuse(*parts, WORDS.to("meta")), "tracing"
    assert not can_fuse(encoder.lstm, nn.Identity(), WORDS), "another kind of attention"
    traced = []
    torch.compiler.reset()
    torch.compile(lambda words: traced.append(can_fuse(*parts, words)) or words + 1, backend="eager")(WORDS)
    assert traced == [False]


@pytest.mark.parametrize("path", ["lstm.step_gates.1", "attention.merge"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_module_is_called(path, change, calls):
    """The guard falls back to the eager recurrence, so that the change acts as it does there."""
    batch, models = as_tensors(random_stories(0)), []
    for implementation in ("fused", "eager"):
        models.append(tiny_model(recurrence_implementation=implementation))
        change(models[-1].encoder, models[-1].encoder.get_submodule(path), path)
        assert not can_fuse(models[-1].encoder.lstm, models[-1].encoder.attention, WORDS)
    outputs = [model(**batch).logits for model in models]
    assert set(calls) == {"eager_recurrence"}
    torch.testing.assert_close(*outputs, rtol=0, atol=0)
    if change is not quantise:
        assert not torch.allclose(outputs[0], tiny_model()(**batch).logits)


@pytest.mark.parametrize("path", ["lstm", "attention"])
def test_a_hook_on_a_whole_part_is_called(path):
    model, seen = tiny_model(), []
    model.encoder.get_submodule(path).register_forward_hook(lambda *_: seen.append(1))
    model(**as_tensors(random_stories(0)))
    assert seen


@pytest.mark.parametrize("knowledge", ["graph_attention", "contextual_attention"])
@pytest.mark.parametrize(
    "path",
    ["lstm.word_gates", "attention.state_scorer", "attention.knowledge_scorer", "knowledge.memory_scorer"],
)
def test_an_adapter_outside_of_the_recurrence_acts_too(path, knowledge):
    """These modules are called in either implementation."""
    if path == "knowledge.memory_scorer" and knowledge == "graph_attention":
        pytest.skip("graph attention has none")
    batch, outputs = as_tensors(random_stories(0)), []
    for implementation in ("fused", "eager"):
        model = tiny_model(knowledge=knowledge, recurrence_implementation=implementation)
        expected = model(**batch).logits
        replace_module(model.encoder, model.encoder.get_submodule(path), path)
        outputs.append(model(**batch).logits)
        assert not torch.allclose(outputs[-1], expected)
    torch.testing.assert_close(*outputs, **EXACT)


def test_an_adapter_on_the_merge_acts_at_every_step():
    """It sees both contexts side by side, as `merge` in the equations does."""
    batch, model = as_tensors(random_stories(0)), tiny_model()
    expected, merge = model(**batch).logits, model.encoder.attention.merge
    merge.register_forward_hook(lambda module, inputs, output: output)
    torch.testing.assert_close(model(**batch).logits, expected)
    seen = []
    merge.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    model(**batch)
    assert {contexts.shape[-1] for contexts in seen} == {model.config.hidden_size + model.config.graph_size}
