"""Optimizers and learning rate schedules of the two recipes."""

import pytest
import torch
from torch import nn

from hf_storyend.training import TrainingOptions
from hf_storyend.training.recipes import ModernRecipe, PaperRecipe, build_recipe


def test_the_modern_rate_rises_then_falls_along_a_cosine():
    recipe = ModernRecipe(learning_rate=1.0, warmup_ratio=0.1)
    assert recipe.learning_rate_at(0.05) == pytest.approx(0.5)
    assert recipe.learning_rate_at(0.1) == pytest.approx(1.0)
    assert recipe.learning_rate_at(0.55) == pytest.approx((1 + 0.01) / 2)
    assert recipe.learning_rate_at(1.0) == pytest.approx(0.01)
    assert 0 < recipe.learning_rate_at(0.0) < 0.05
    rates = [recipe.learning_rate_at(0.1 + 0.9 * step / 50) for step in range(51)]
    assert rates == sorted(rates, reverse=True)


def test_no_warm_up_is_possible():
    assert ModernRecipe(learning_rate=1.0, warmup_ratio=0.0).learning_rate_at(0.0) == pytest.approx(1.0)


def test_embeddings_and_biases_do_not_decay():
    model = nn.Sequential(nn.Embedding(3, 2), nn.Linear(2, 4))
    optimizer = ModernRecipe(weight_decay=0.3).optimizer(model)
    decaying, still = optimizer.param_groups
    assert decaying["weight_decay"] == 0.3 and decaying["params"] == [model[1].weight]
    assert still["weight_decay"] == 0 and len(still["params"]) == 2


def test_the_paper_s_rate_falls_after_an_epoch_worse_than_the_last_three():
    recipe = PaperRecipe()
    for loss in (5.0, 4.0, 4.5):
        recipe.on_epoch_end(loss)
    assert recipe.learning_rate_at(0.5) == 0.1
    recipe.on_epoch_end(4.9)
    assert recipe.learning_rate_at(0.5) == 0.1, "4.9 is not worse than 5.0."
    recipe.on_epoch_end(5.1)
    assert recipe.learning_rate_at(0.5) == pytest.approx(0.095)
    other = PaperRecipe()
    other.load_state_dict(recipe.state_dict())
    assert other.learning_rate_at(0.0) == recipe.learning_rate_at(0.0) and other.losses == recipe.losses


def test_the_paper_s_optimiser():
    optimizer = build_recipe(TrainingOptions(recipe="paper")).optimizer(nn.Linear(2, 2))
    assert isinstance(optimizer, torch.optim.SGD)
    assert (optimizer.defaults["lr"], optimizer.defaults["momentum"]) == (0.1, 0.9)


def test_options_override_a_recipe():
    recipe = build_recipe(TrainingOptions(learning_rate=0.5, warmup_ratio=0.3, weight_decay=0.0))
    assert recipe == ModernRecipe(0.5, 0.3, 0.0)
    assert build_recipe(TrainingOptions(recipe="paper", learning_rate=0.5)).learning_rate_at(0) == 0.5
