"""What can be chosen about an evaluation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class EvaluationOptions:
    """
    Which numbers are computed, and on how many stories.

    Args:
        batch_size: Stories a step, all processes together. It changes the speed, not the result.
        generation: Arguments of `generate()`: `{"num_beams": 4, "no_repeat_ngram_size": 3}`. The model's own unless
            given. Words drawn at random (`do_sample`) depend on the batches, thus on the number of processes.
        max_stories: The first so many stories only.
        num_negatives: Negatives a batch of the sampled softmax.
        num_relation_names: Names of relations that stand before the words when negatives are drawn, as many as in the
            authors' vocabulary; 0 draws words only.
        num_seeds: How often they are drawn anew; 0 leaves the sampled softmax out.
        confidence: Resamples of the bootstrap that gives intervals; 0 means none.
        endings: Whether to write endings and compare them with the references; without it, likelihoods alone.
        constant_ending: What the trivial system always writes; by default the most frequent reference.
        seed: Of all that is drawn.
    """

    batch_size: int = 128
    generation: dict[str, Any] = field(default_factory=dict)
    max_stories: int | None = None
    num_negatives: int = 512
    num_relation_names: int = 45
    num_seeds: int = 5
    confidence: int = 0
    endings: bool = True
    constant_ending: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        least = dict.fromkeys(("batch_size", "max_stories", "num_negatives"), 1)
        least |= dict.fromkeys(("num_relation_names", "num_seeds", "confidence", "seed"), 0)
        for name, smallest in least.items():
            value = getattr(self, name)
            if value is None and name == "max_stories":
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < smallest:
                raise ValueError(f"`{name}` must be a whole number of at least {smallest}; got {value!r}.")
