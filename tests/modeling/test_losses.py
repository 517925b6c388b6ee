"""Losses: chunked cross entropy against the plain one, sampled softmax against shares counted one by one."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from story_cases import NUM_WORDS, as_tensors, batch_for, context_of, random_stories, tiny_model, tiny_system
from torch import nn
from torch.nn import functional

from hf_storyend.modeling import losses
from hf_storyend.modeling.losses import (
    IGNORED,
    SampledSoftmax,
    cross_entropy_sum,
    expected_counts,
    labelled_steps,
    log_uniform_probabilities,
    next_word_targets,
    projected_cross_entropy,
    sample_unique,
    subsample_targets,
)
from hf_storyend.systems import SYSTEMS

NUM_CLASSES, SIZE = 11, 5


def make_case(num_rows: int, seed: int = 0, dtype: torch.dtype = torch.float64):
    generator = torch.Generator().manual_seed(seed)
    states = torch.randn(num_rows, SIZE, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()
    targets = torch.randint(NUM_CLASSES, (num_rows,), generator=generator)
    targets[torch.rand(num_rows, generator=generator) < 0.3] = IGNORED
    torch.manual_seed(seed)
    return states, targets, nn.Linear(SIZE, NUM_CLASSES, dtype=torch.float64).to(dtype)


def plain_sum(states, targets, lm_head):
    return functional.cross_entropy(lm_head(states), targets, ignore_index=IGNORED, reduction="sum")


def gradients(loss, states, lm_head):
    return torch.autograd.grad(loss, [states, lm_head.weight, lm_head.bias])


@settings(max_examples=60, derandomize=True)
@given(
    num_rows=st.integers(0, 20), seed=st.integers(0, 10**6), chunk=st.integers(1, 8), scale=st.sampled_from([1.0, 3.0])
)
def test_same_as_projection_and_cross_entropy(num_rows, seed, chunk, scale):
    """Also where the loss is scaled, as by gradient accumulation, and where no row has a target."""
    states, targets, lm_head = make_case(num_rows, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(losses, "_CHUNK", chunk)
        actual = scale * projected_cross_entropy(states, targets, lm_head)
    expected = scale * plain_sum(states, targets, lm_head)
    torch.testing.assert_close(actual, expected)
    for one, other in zip(gradients(actual, states, lm_head), gradients(expected, states, lm_head), strict=True):
        torch.testing.assert_close(one, other)


def test_each_part_honours_its_own_gradient():
    first, second = make_case(9, seed=1), make_case(7, seed=2)
    lm_head = first[2]

    def total(loss):
        return 3.0 * loss(*first[:2], lm_head) - 0.5 * loss(*second[:2], lm_head)

    leaves = [first[0], second[0], lm_head.weight, lm_head.bias]
    actual, expected = (torch.autograd.grad(total(loss), leaves) for loss in (projected_cross_entropy, plain_sum))
    torch.testing.assert_close(actual, expected)


def test_gradients_can_be_made_twice():
    states, targets, lm_head = make_case(9)
    loss = projected_cross_entropy(states, targets, lm_head)
    first = torch.autograd.grad(loss, [states, lm_head.weight], retain_graph=True)
    torch.testing.assert_close(torch.autograd.grad(loss, [states, lm_head.weight]), first, rtol=0, atol=0)


@pytest.mark.parametrize("frozen", ["states", "lm_head", "bias"])
def test_what_is_frozen_gets_no_gradient(frozen):
    states, targets, lm_head = make_case(9)
    leaves = {"states": states, "weight": lm_head.weight, "bias": lm_head.bias}
    for name in {"states": ["states"], "lm_head": ["weight", "bias"], "bias": ["bias"]}[frozen]:
        leaves.pop(name).requires_grad_(False)
    actual, expected = (
        torch.autograd.grad(loss(states, targets, lm_head), list(leaves.values()))
        for loss in (projected_cross_entropy, plain_sum)
    )
    torch.testing.assert_close(actual, expected)


def test_scores_that_would_overflow():
    states, targets, lm_head = make_case(9)
    large = (states * 1e4).detach().requires_grad_()
    loss = projected_cross_entropy(large, targets, lm_head)
    torch.testing.assert_close(loss, plain_sum(large, targets, lm_head))
    assert all(gradient.isfinite().all() for gradient in gradients(loss, large, lm_head))


def test_without_gradients_none_are_made(monkeypatch):
    states, targets, lm_head = make_case(9)
    monkeypatch.setattr(losses, "_add_gradients", lambda *_: pytest.fail("nobody needs these"))
    with torch.no_grad():
        loss = projected_cross_entropy(states, targets, lm_head)
    torch.testing.assert_close(loss, plain_sum(states, targets, lm_head).detach())


@pytest.mark.parametrize("dtype, tolerance", [(torch.bfloat16, 0.05), (torch.float16, 0.01)])
def test_half_precision_is_summed_in_float32(dtype, tolerance):
    states, targets, lm_head = make_case(20, dtype=dtype)
    loss = projected_cross_entropy(states, targets, lm_head)
    assert loss.dtype == torch.float32
    exact = make_case(20)
    torch.testing.assert_close(loss.double(), plain_sum(*exact), rtol=tolerance, atol=tolerance)
    for one, other in zip(
        gradients(loss, states, lm_head), gradients(plain_sum(*exact), exact[0], exact[2]), strict=True
    ):
        assert one.dtype == dtype
        torch.testing.assert_close(one.double(), other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype, scale", [(torch.bfloat16, 2.0**17), (torch.float16, 2.0**10)])
def test_a_large_scale_of_the_loss_under_autocast(dtype, scale):
    """As a gradient scaler gives it; in float16 it saves small gradients from underflow."""
    states, targets, lm_head = make_case(20, dtype=torch.float32)
    with torch.autocast("cpu", dtype=dtype):
        loss = projected_cross_entropy(states, targets, lm_head)
    assert loss.dtype == torch.float32
    expected = gradients(plain_sum(states, targets, lm_head), states, lm_head)
    for one, other in zip(gradients(scale * loss, states, lm_head), expected, strict=True):
        assert one.dtype == torch.float32
        torch.testing.assert_close(one / scale, other, rtol=0.05, atol=0.05)


def test_an_adapter_on_the_projection_has_its_say():
    states, targets, lm_head = make_case(9)
    lm_head.register_forward_hook(lambda module, inputs, output: output * 2)
    torch.testing.assert_close(projected_cross_entropy(states, targets, lm_head), plain_sum(states, targets, lm_head))


def test_dropout_is_before_the_projection():
    states, targets, lm_head = make_case(9)
    nothing = projected_cross_entropy(states, targets, lm_head, nn.Dropout(1.0))
    torch.testing.assert_close(nothing, plain_sum(torch.zeros_like(states), targets, lm_head))


def test_logits_that_are_there_already():
    states, targets, lm_head = make_case(9)
    torch.testing.assert_close(
        cross_entropy_sum(lm_head(states).view(3, 3, -1), targets.view(3, 3)), plain_sum(states, targets, lm_head)
    )


def test_steps_up_to_the_last_label():
    labels = torch.tensor([[5, 6, IGNORED], [IGNORED, 7, IGNORED], [IGNORED] * 3, [5, IGNORED, 7]])
    assert labelled_steps(labels).int().tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 0], [1, 1, 1]]


@pytest.mark.parametrize("is_training", [True, False])
def test_a_label_that_is_ignored_in_between_is_still_read(is_training):
    """Its word is not predicted, and what comes behind it is, from the same states as ever."""
    model, batch = tiny_model().train(is_training), as_tensors(random_stories(3, num_stories=2, max_ending=4))
    labels = batch["labels"]
    inputs = model.prepare_decoder_input_ids_from_labels(labels)
    labels[:, 0] = IGNORED
    logits = model(**context_of(batch), decoder_input_ids=inputs).logits
    expected = cross_entropy_sum(logits, labels) / (labels != IGNORED).sum().clamp(min=1)
    actual = model(**batch, decoder_input_ids=inputs).ending_loss
    torch.testing.assert_close(actual, expected)


def test_in_evaluation_given_inputs_are_read_to_their_end():
    model, batch = tiny_model(), as_tensors(random_stories(3))
    inputs = torch.full((3, 4), 6)
    labels = torch.full((3, 4), IGNORED)
    labels[:, 0] = 7
    with_labels = model(**context_of(batch), decoder_input_ids=inputs, labels=labels).logits
    torch.testing.assert_close(with_labels, model(**context_of(batch), decoder_input_ids=inputs).logits)


def test_next_word_targets_and_the_sampling_of_them():
    words = torch.tensor([[[5, 6], [7, 8], [9, 0]], [[5, 0], [0, 0], [6, 7]]])
    mask = torch.tensor([[[1, 1], [1, 1], [1, 0]], [[1, 0], [0, 0], [1, 1]]]).bool()
    targets = next_word_targets(words, mask, end_id=3)
    nothing = [IGNORED] * 3
    assert targets.tolist() == [[nothing, [7, 8, 3], [9, 3, IGNORED]], [nothing, nothing, [6, 7, 3]]]
    assert subsample_targets(targets, 1.0) is targets
    torch.manual_seed(0)
    many = torch.full((10_000,), 5)
    kept = subsample_targets(many, 0.25) == 5
    assert 0.2 < kept.double().mean() < 0.3


SAMPLED = SampledSoftmax(ids=torch.tensor([0, 3, 4, 9, 17]), log_expected_counts=torch.linspace(-0.1, -2.0, NUM_WORDS))


def share(scores: torch.Tensor, target: int) -> torch.Tensor:
    """Of the target among itself, the sampled classes and the slots, from scores [V] or [V + slots]."""
    words = {*SAMPLED.ids.tolist(), target, *range(NUM_WORDS, len(scores))}
    counts = SAMPLED.log_expected_counts
    corrected = {word: scores[word] - (counts[word] if word < NUM_WORDS else 0.0) for word in words}
    return corrected[target].exp() / sum(score.exp() for score in corrected.values())


@pytest.fixture
def known_sample(monkeypatch):
    monkeypatch.setattr(SampledSoftmax, "sample", lambda *_: SAMPLED)


@pytest.mark.parametrize("name", SYSTEMS)
def test_an_ending_is_scored_among_the_sampled_classes(name, known_sample):
    """With the gradients of all weights; the probabilities of generating and copying a word add up."""
    model, batch = tiny_system(name, num_sampled_classes=5, encoder_loss_weight=0.0), batch_for(name, seed=3)
    labels = batch["labels"]
    logits = model(**batch).logits
    losses = [
        -share(logits[story, place], int(labels[story, place])).log()
        for story, place in (labels != IGNORED).nonzero().tolist()
    ]
    expected = torch.stack(losses).mean()
    actual = model.train()(**batch).ending_loss
    torch.testing.assert_close(actual, expected, rtol=1e-6, atol=0)
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    ours, theirs = (torch.autograd.grad(loss, weights, allow_unused=True) for loss in (actual, expected))
    for one, other in zip(ours, theirs, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-9)


def test_the_context_is_scored_among_the_sampled_classes(known_sample):
    batch = as_tensors(random_stories(3))
    model = tiny_model(num_sampled_classes=5)
    torch.manual_seed(0)
    states, lm_head = torch.randn(2, 4, 7).double(), model.lm_head
    targets = torch.tensor([[3, IGNORED, 22, 9], [IGNORED, 0, 5, 5]])
    rows = [(states[i, j], int(targets[i, j])) for i, j in (targets != IGNORED).nonzero().tolist()]
    expected = sum(-share(lm_head(state), target).log() for state, target in rows)
    actual = projected_cross_entropy(states, targets, lm_head, softmax=SAMPLED)
    torch.testing.assert_close(actual, expected, rtol=1e-6, atol=0)
    assert model.train()(**batch).encoder_loss < tiny_model().train()(**batch).encoder_loss


def test_the_distribution_over_all_words_is_what_is_best_to_be_learnt():
    """There, the mean gradient over targets and samples vanishes; without the correction it would not."""
    torch.manual_seed(0)
    true = torch.randn(40, dtype=torch.float64).softmax(0)
    lm_head = nn.Linear(1, 40).double()

    def mean_gradient(distribution: torch.Tensor, num_samples: int = 600) -> tuple[torch.Tensor, torch.Tensor]:
        with torch.no_grad():
            lm_head.weight.zero_()
            lm_head.bias.copy_(distribution.log())
        found = []
        for _ in range(num_samples):
            targets = true.multinomial(64, replacement=True)
            softmax = SampledSoftmax.sample(40, 6, targets.device)
            each = softmax.losses(torch.zeros(64, 1, dtype=torch.float64), targets, lm_head)
            found.append(torch.autograd.grad(each.mean(), lm_head.bias)[0])
        stacked = torch.stack(found)
        return stacked.mean(dim=0), stacked.std(dim=0) / num_samples**0.5

    mean, error = mean_gradient(true)
    # Inclusion of words is not quite independent: a hundredth of what a wrong distribution gives is allowed for that.
    wrong, _ = mean_gradient(torch.full((40,), 1 / 40, dtype=torch.float64))
    assert (mean.abs() <= 4 * error + 0.03 * wrong.abs().max()).all()
    assert wrong.abs().max() > 0.02


def test_as_many_classes_as_words_are_the_full_softmax():
    batch = as_tensors(random_stories(3))
    whole = tiny_model().train()(**batch)
    many = tiny_model(num_sampled_classes=NUM_WORDS).train()(**batch)
    torch.testing.assert_close(many.loss, whole.loss, rtol=0, atol=0)


def test_classes_are_sampled_for_every_batch_in_training_only():
    batch, model = as_tensors(random_stories(3)), tiny_model(num_sampled_classes=5)
    torch.testing.assert_close(model(**batch).loss, tiny_model()(**batch).loss, rtol=0, atol=0)
    model.train()
    torch.manual_seed(1)
    first, second = model(**batch).loss, model(**batch).loss
    assert first != second
    torch.manual_seed(1)
    assert model(**batch).loss == first, "a resumed run samples what an uninterrupted one would"


def test_sampled_classes_are_distinct_and_as_frequent_as_expected():
    torch.manual_seed(0)
    samples = [SampledSoftmax.sample(200, 20, torch.device("cpu")) for _ in range(500)]
    assert all(len(sample.ids.unique()) == 20 and sample.ids.max() < 200 for sample in samples)
    ids = torch.arange(200)
    found = torch.stack([sample.contains(ids) for sample in samples]).double().mean(dim=0)
    expected = torch.stack([sample.log_expected_counts.exp() for sample in samples]).double().mean(dim=0)
    assert (found - expected).abs().max() < 0.08
    assert math.isclose(found.sum(), 20) and found[0] > found[100:].max()
    assert log_uniform_probabilities(200)[0] == pytest.approx(math.log(2) / math.log(201))


def test_an_adapter_on_the_projection_acts_on_sampled_classes(known_sample):
    batch, model = as_tensors(random_stories(3)), tiny_model(num_sampled_classes=5).train()
    before = model(**batch).loss
    model.lm_head.register_forward_hook(lambda module, inputs, output: output)
    torch.testing.assert_close(model(**batch).loss, before)
    model.lm_head.register_forward_hook(lambda module, inputs, output: 2 * output)
    assert model(**batch).loss != before


@pytest.mark.parametrize("name", ["ie-msa-ca", "ie-msa-ca-copy"])
def test_a_sampled_loss_in_half_precision_is_close(name, known_sample):
    model, batch = tiny_system(name, dtype=torch.float32, num_sampled_classes=5).train(), batch_for(name, seed=3)
    single = model(**batch).loss
    with torch.autocast("cpu", torch.bfloat16):
        half = model(**batch).loss
    assert half.dtype == torch.float32
    torch.testing.assert_close(half, single, rtol=0.02, atol=0)


@pytest.mark.slow
def test_a_compiled_model_has_the_same_sampled_loss(known_sample):
    """Of the ending and of the context; compiling takes its time."""
    model, batch = tiny_system("ie-msa-ca-copy", num_sampled_classes=5).train(), batch_for("ie-msa-ca-copy", seed=3)
    compiled = torch.compile(model, backend="eager")
    torch.testing.assert_close(compiled(**batch).loss, model(**batch).loss)


def test_unique_samples_are_the_first_of_a_sequence():
    """Numbers from 0 to 1 in, the first distinct ids of the log-uniform sequence out, and how many tries it took."""
    log_range = math.log(11)
    numbers = [math.log(index + 1.5) / log_range for index in (0, 0, 4, 0, 9, 4, 2)]
    sequence = iter([torch.tensor(numbers[:4], dtype=torch.float64), torch.tensor(numbers[4:], dtype=torch.float64)])
    ids, num_tries = sample_unique(10, 4, lambda size: next(sequence))
    assert ids.tolist() == [0, 4, 9, 2] and num_tries == 7


def test_expected_counts_are_probabilities_of_being_sampled():
    probabilities = log_uniform_probabilities(50)
    torch.testing.assert_close(probabilities.sum(), torch.tensor(1.0, dtype=torch.float64))
    counts = expected_counts(torch.log1p(-probabilities), 30)
    torch.testing.assert_close(counts, 1 - (1 - probabilities) ** 30)
