"""Optimisers and learning rates: the paper's recipe and a modern one."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from .options import TrainingOptions


@dataclass
class ModernRecipe:
    """AdamW; the rate rises during the warm-up and falls along a cosine to a hundredth."""

    learning_rate: float = 2e-3
    warmup_ratio: float = 0.02
    weight_decay: float = 0.01

    def optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        """AdamW; word vectors and biases do not decay."""
        vectors = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
        parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        decaying = [parameter for parameter in parameters if parameter.ndim > 1 and id(parameter) not in vectors]
        kept = {id(parameter) for parameter in decaying}
        groups = [
            {"params": decaying, "weight_decay": self.weight_decay},
            {"params": [parameter for parameter in parameters if id(parameter) not in kept], "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(groups, lr=self.learning_rate)

    def rate(self, progress: float) -> float:
        """Learning rate when this share of the run, from 0 to 1, is done."""
        if progress < self.warmup_ratio:
            return self.learning_rate * max(progress / self.warmup_ratio, 0.01)
        rest = (progress - self.warmup_ratio) / (1 - self.warmup_ratio)
        return self.learning_rate * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * min(rest, 1.0))))

    def epoch_ended(self, loss: float) -> None:
        """The rate follows the run's length, not its losses."""

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """There is nothing to remember."""


@dataclass
class PaperRecipe:
    """Momentum 0.9; the rate is multiplied by 0.95 when an epoch's loss is worse than the last three."""

    learning_rate: float = 0.1
    decay: float = 0.95
    memory: int = 3
    current: float = field(init=False)
    losses: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.current = self.learning_rate

    def optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        """Stochastic gradient descent with momentum."""
        return torch.optim.SGD(model.parameters(), lr=self.learning_rate, momentum=0.9)

    def rate(self, progress: float) -> float:
        """Learning rate now."""
        return self.current

    def epoch_ended(self, loss: float) -> None:
        """Compare an epoch's mean loss with those of the epochs before it."""
        if len(self.losses) >= self.memory and loss > max(self.losses[-self.memory :]):
            self.current *= self.decay
        self.losses.append(loss)

    def state_dict(self) -> dict[str, Any]:
        return {"current": self.current, "losses": self.losses}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.current, self.losses = float(state["current"]), list(state["losses"])


Recipe = ModernRecipe | PaperRecipe


def build_recipe(options: TrainingOptions) -> Recipe:
    """The recipe of the options, with its own numbers where the options name none."""
    given = {name: getattr(options, name) for name in ("learning_rate", "warmup_ratio", "weight_decay")}
    given = {name: value for name, value in given.items() if value is not None}
    return PaperRecipe(**given) if options.recipe == "paper" else ModernRecipe(**given)
