"""
The loss of the authors' code: a softmax over the target and a few hundred words drawn for the batch, not over all.

Words are drawn from a log-uniform distribution over ids, which stand by falling frequency, until there are enough
different ones. Every score, that of the target too, is lowered by the logarithm of how often its word was to be
expected among them: then the distribution over all words is still what is best to be learnt. Words that are seldom
drawn seldom count, so that most is learnt about how to tell the frequent ones apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from .plain_modules import is_plain
from .tensor_values import precise


def log_uniform_probabilities(num_words: int) -> torch.Tensor:
    """[V]: P(id) = log((id + 2) / (id + 1)) / log(V + 1), close to Zipf's law; in double precision."""
    ids = torch.arange(num_words, dtype=torch.float64)
    return torch.log1p(1 / (ids + 1)) / torch.log(torch.tensor(num_words + 1, dtype=torch.float64))


def draw_different(num_words: int, num_drawn: int, uniform: Callable[[int], torch.Tensor]) -> tuple[torch.Tensor, int]:
    """
    The first `num_drawn` different ids of a log-uniform sequence, and how long the sequence was. `uniform` gives so
    many numbers from 0 to 1, in double precision.
    """
    drawn = torch.empty(0, dtype=torch.int64)
    log_range = torch.log(torch.tensor(num_words + 1, dtype=torch.float64))
    while True:
        new = (uniform(8 * num_drawn) * log_range).exp().floor().long() - 1
        drawn = torch.cat((drawn, new.clamp(max=num_words - 1)))
        ids, groups = drawn.unique(return_inverse=True)
        places = torch.full_like(ids, len(drawn)).scatter_reduce(0, groups, torch.arange(len(drawn)), "amin")
        if len(ids) >= num_drawn:
            first = places.sort().values[:num_drawn]
            return drawn[first], int(first[-1]) + 1


def expected_counts(log_misses: torch.Tensor, num_tries: torch.Tensor | int) -> torch.Tensor:
    """How often a sequence of so many tries holds words that one try misses with these log probabilities."""
    return -torch.expm1(num_tries * log_misses)


@dataclass(frozen=True)
class DrawnWords:
    """Words of a batch that stand for all, and by how much the score of any word is lowered."""

    ids: torch.Tensor  # [M]
    lowering: torch.Tensor  # [V], the logarithm of its expected count

    @classmethod
    @torch.compiler.disable
    def draw(cls, num_words: int, num_drawn: int, device: torch.device) -> DrawnWords:
        """By the generator of the CPU, wherever the model is."""
        ids, num_tries = draw_different(num_words, num_drawn, lambda size: torch.rand(size, dtype=torch.float64))
        log_misses = torch.log1p(-log_uniform_probabilities(num_words))
        return cls(ids.to(device), expected_counts(log_misses, num_tries).log().float().to(device))

    def have(self, words: torch.Tensor) -> torch.Tensor:
        """Which of these words, of any shape, were drawn."""
        return torch.zeros_like(self.lowering, dtype=torch.bool).index_fill(0, self.ids, True)[words]

    def scores(self, states: torch.Tensor, targets: torch.Tensor, lm_head: nn.Module) -> tuple[torch.Tensor, ...]:
        """Lowered scores of the targets [N, 1] and of the drawn words [N, M], lowest where one is the target."""
        targets = targets.unsqueeze(1)
        if is_plain(lm_head, nn.Linear):
            weight, bias = lm_head.weight, lm_head.bias
            of_targets = (states * weight[targets.squeeze(1)]).sum(dim=1, keepdim=True) + bias[targets]
            of_drawn = functional.linear(states, weight[self.ids], bias[self.ids])
        else:
            logits = lm_head(states)
            of_targets, of_drawn = logits.gather(1, targets), logits[:, self.ids]
        of_drawn = precise(of_drawn) - self.lowering[self.ids]
        of_drawn = of_drawn.masked_fill(self.ids == targets, torch.finfo(of_drawn.dtype).min)
        return precise(of_targets) - self.lowering[targets], of_drawn


def drawn_losses(states: torch.Tensor, targets: torch.Tensor, lm_head: nn.Module, drawn: DrawnWords) -> torch.Tensor:
    """-log of each target's share [N] among itself and the drawn words, from states [N, D] and targets [N]."""
    of_targets, of_drawn = drawn.scores(states, targets, lm_head)
    return torch.cat((of_targets, of_drawn), dim=1).logsumexp(dim=1) - of_targets.squeeze(1)
