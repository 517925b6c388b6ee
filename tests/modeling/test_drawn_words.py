"""The loss over drawn words, against shares counted one by one, and what is learnt by it."""

from __future__ import annotations

import math

import pytest
import torch
from story_cases import NUM_WORDS, as_tensors, random_stories, tiny_model
from system_cases import NUM_SLOTS, batch_for, tiny_system
from torch import nn

from hf_storyend.modeling.drawn_words import DrawnWords, drawn_losses, log_uniform_probabilities
from hf_storyend.modeling.losses import IGNORED, sum_of_losses
from hf_storyend.systems import SYSTEMS

DRAWN = DrawnWords(ids=torch.tensor([0, 3, 4, 9, 17]), lowering=torch.linspace(-0.1, -2.0, NUM_WORDS))


def share(scores: torch.Tensor, target: int) -> torch.Tensor:
    """Of the target among itself, the drawn words and the slots, from scores of all of them [V] or [V + slots]."""
    words = {*DRAWN.ids.tolist(), target, *range(NUM_WORDS, len(scores))}
    lowered = {word: scores[word] - (DRAWN.lowering[word] if word < NUM_WORDS else 0.0) for word in words}
    return lowered[target].exp() / sum(score.exp() for score in lowered.values())


@pytest.fixture
def known_draw(monkeypatch):
    monkeypatch.setattr(DrawnWords, "draw", lambda *_: DRAWN)


@pytest.mark.parametrize("name", SYSTEMS)
def test_an_ending_is_scored_among_the_drawn_words(name, known_draw):
    """Gradients of all weights included; generating and copying a word are one way to say it, as everywhere."""
    model, batch = tiny_system(name, num_negatives=5, encoder_loss_weight=0.0), batch_for(name, seed=3)
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


def test_slots_were_among_them():
    labels = torch.cat([batch_for("ie-msa-ca-copy", seed=3)["labels"].flatten()])
    assert ((labels >= NUM_WORDS) & (labels < NUM_WORDS + NUM_SLOTS)).any()


def test_the_context_is_scored_among_the_drawn_words(known_draw):
    batch = as_tensors(random_stories(3))
    model = tiny_model(num_negatives=5)
    torch.manual_seed(0)
    states, lm_head = torch.randn(2, 4, 7).double(), model.lm_head
    targets = torch.tensor([[3, IGNORED, 22, 9], [IGNORED, 0, 5, 5]])
    rows = [(states[i, j], int(targets[i, j])) for i, j in (targets != IGNORED).nonzero().tolist()]
    expected = sum(-share(lm_head(state), target).log() for state, target in rows)
    torch.testing.assert_close(sum_of_losses(states, targets, lm_head, drawn=DRAWN), expected, rtol=1e-6, atol=0)
    assert model.train()(**batch).encoder_loss < tiny_model().train()(**batch).encoder_loss


def test_the_distribution_over_all_words_is_what_is_best_to_be_learnt():
    """There, the gradient vanishes in the mean over targets and draws: at lowered scores alone it would not."""
    torch.manual_seed(0)
    true = torch.randn(40, dtype=torch.float64).softmax(0)
    lm_head = nn.Linear(1, 40).double()

    def mean_gradient(distribution: torch.Tensor, num_draws: int = 600) -> tuple[torch.Tensor, torch.Tensor]:
        with torch.no_grad():
            lm_head.weight.zero_()
            lm_head.bias.copy_(distribution.log())
        gradients = []
        for _ in range(num_draws):
            targets = true.multinomial(64, replacement=True)
            drawn = DrawnWords.draw(40, 6, targets.device)
            losses = drawn_losses(torch.zeros(64, 1, dtype=torch.float64), targets, lm_head, drawn)
            gradients.append(torch.autograd.grad(losses.mean(), lm_head.bias)[0])
        stacked = torch.stack(gradients)
        return stacked.mean(dim=0), stacked.std(dim=0) / num_draws**0.5

    mean, error = mean_gradient(true)
    # Inclusion of words is not quite independent: a hundredth of what a wrong distribution gives is allowed for that.
    wrong, _ = mean_gradient(torch.full((40,), 1 / 40, dtype=torch.float64))
    assert (mean.abs() <= 4 * error + 0.03 * wrong.abs().max()).all()
    assert wrong.abs().max() > 0.02


def test_as_many_negatives_as_words_are_the_whole_vocabulary():
    batch = as_tensors(random_stories(3))
    whole = tiny_model().train()(**batch)
    many = tiny_model(num_negatives=NUM_WORDS).train()(**batch)
    torch.testing.assert_close(many.loss, whole.loss, rtol=0, atol=0)


def test_words_are_drawn_for_every_batch_in_training_only():
    batch, model = as_tensors(random_stories(3)), tiny_model(num_negatives=5)
    torch.testing.assert_close(model(**batch).loss, tiny_model()(**batch).loss, rtol=0, atol=0)
    model.train()
    torch.manual_seed(1)
    first, second = model(**batch).loss, model(**batch).loss
    assert first != second
    torch.manual_seed(1)
    assert model(**batch).loss == first, "a resumed run draws what an uninterrupted one would"


def test_what_is_drawn_and_how_much_it_is_lowered():
    """Different words, the frequent ones more often; by the logarithm of how often they were to be expected."""
    torch.manual_seed(0)
    draws = [DrawnWords.draw(200, 20, torch.device("cpu")) for _ in range(500)]
    assert all(len(draw.ids.unique()) == 20 and draw.ids.max() < 200 for draw in draws)
    ids = torch.arange(200)
    found = torch.stack([draw.have(ids) for draw in draws]).double().mean(dim=0)
    expected = torch.stack([draw.lowering.exp() for draw in draws]).double().mean(dim=0)
    assert (found - expected).abs().max() < 0.08
    assert math.isclose(found.sum(), 20) and found[0] > found[100:].max()
    assert log_uniform_probabilities(200)[0] == pytest.approx(math.log(2) / math.log(201))


def test_an_adapter_on_the_projection_has_its_say(known_draw):
    batch, model = as_tensors(random_stories(3)), tiny_model(num_negatives=5).train()
    before = model(**batch).loss
    model.lm_head.register_forward_hook(lambda module, inputs, output: output)
    torch.testing.assert_close(model(**batch).loss, before)
    model.lm_head.register_forward_hook(lambda module, inputs, output: 2 * output)
    assert model(**batch).loss != before


@pytest.mark.parametrize("name", ["ie-msa-ca", "ie-msa-ca-copy"])
def test_half_precision_is_close(name, known_draw):
    model, batch = tiny_system(name, dtype=torch.float32, num_negatives=5).train(), batch_for(name, seed=3)
    single = model(**batch).loss
    with torch.autocast("cpu", torch.bfloat16):
        half = model(**batch).loss
    assert half.dtype == torch.float32
    torch.testing.assert_close(half, single, rtol=0.02, atol=0)


@pytest.mark.slow
def test_a_compiled_model_has_the_same_loss(known_draw):
    """Of the ending and of the context; compiling takes its time."""
    model, batch = tiny_system("ie-msa-ca-copy", num_negatives=5).train(), batch_for("ie-msa-ca-copy", seed=3)
    compiled = torch.compile(model, backend="eager")
    torch.testing.assert_close(compiled(**batch).loss, model(**batch).loss)
