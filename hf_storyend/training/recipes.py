"""Training recipes: an optimizer and a learning rate schedule, each with its own defaults."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from .options import TrainingOptions


@dataclass
class ModernRecipe:
    """AdamW with linear warm-up and cosine decay to one hundredth of the peak learning rate."""

    learning_rate: float = 2e-3
    warmup_ratio: float = 0.02
    weight_decay: float = 0.01

    def optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        """Return AdamW; embeddings and biases do not decay."""
        embeddings = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
        parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        decaying = [parameter for parameter in parameters if parameter.ndim > 1 and id(parameter) not in embeddings]
        decaying_ids = {id(parameter) for parameter in decaying}
        others = [parameter for parameter in parameters if id(parameter) not in decaying_ids]
        groups = [
            {"params": decaying, "weight_decay": self.weight_decay},
            {"params": others, "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(groups, lr=self.learning_rate)

    def learning_rate_at(self, progress: float) -> float:
        """Return the learning rate at a fraction of the run, from 0 to 1."""
        if progress < self.warmup_ratio:
            return self.learning_rate * max(progress / self.warmup_ratio, 0.01)
        rest = (progress - self.warmup_ratio) / (1 - self.warmup_ratio)
        return self.learning_rate * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * min(rest, 1.0))))

    def on_epoch_end(self, loss: float) -> None:
        """Do nothing: the schedule depends on the progress alone."""

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Do nothing: there is no state."""


@dataclass
class PaperRecipe:
    """SGD with momentum 0.9; the learning rate decays when an epoch's loss exceeds those of the last three."""

    learning_rate: float = 0.1
    decay: float = 0.95
    window: int = 3
    current: float = field(init=False)
    losses: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.current = self.learning_rate

    def optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        """Return stochastic gradient descent with momentum."""
        return torch.optim.SGD(model.parameters(), lr=self.learning_rate, momentum=0.9)

    def learning_rate_at(self, progress: float) -> float:
        """Return the current learning rate, whatever the progress."""
        return self.current

    def on_epoch_end(self, loss: float) -> None:
        """Decay the learning rate if the epoch's mean loss exceeds those of the epochs before it."""
        if len(self.losses) >= self.window and loss > max(self.losses[-self.window :]):
            self.current *= self.decay
        self.losses.append(loss)

    def state_dict(self) -> dict[str, Any]:
        return {"current": self.current, "losses": self.losses}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.current, self.losses = float(state["current"]), list(state["losses"])


Recipe = ModernRecipe | PaperRecipe


def build_recipe(options: TrainingOptions) -> Recipe:
    """Return the recipe of the options, with its defaults for what the options leave out."""
    given = {name: getattr(options, name) for name in ("learning_rate", "warmup_ratio", "weight_decay")}
    given = {name: value for name, value in given.items() if value is not None}
    return PaperRecipe(**given) if options.recipe == "paper" else ModernRecipe(**given)
