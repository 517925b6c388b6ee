"""How far a triple that a user adds raises the probability of its tail."""

from __future__ import annotations

import random
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from datasets import Dataset

from ..modeling import IncrementalEncoderTokenizer
from ..modeling.knowledge_table import Triple

_MIN_LETTERS = 4


@dataclass(frozen=True)
class UserTripleGain:
    """
    Change of log p(tail) by a triple with a random head of the story and a random tail that is not in it, in nats.

    Args:
        num_stories: Stories, each with one triple.
        median: Median over stories of the mean over the steps of the ending.
        median_of_best: Median over stories of the largest change at any step.
    """

    num_stories: int
    median: float
    median_of_best: float

    def describe(self) -> str:
        """Return one sentence."""
        return (
            f"own triples: one with a random head and tail raises the log-probability of the tail by "
            f"{self.median:.2f} nats (median of {self.num_stories} stories, mean over the words of the ending; at the "
            f"best word by {self.median_of_best:.2f})"
        )


@torch.no_grad()
def measure_user_triples(
    model: Any, tokenizer: IncrementalEncoderTokenizer, stories: Dataset, *, max_stories: int = 100, seed: int = 0
) -> UserTripleGain | None:
    """
    Add one random triple to each of the first stories, and compare log p(tail) before each word of the human ending.

    Returns:
        The gain; None if the model knows no relation or no story has a word to start from.
    """
    chooser = _TripleChooser(tokenizer, seed)
    gains = []
    for row in range(min(max_stories, len(stories))):
        story = stories[row]
        triple = chooser.choose(story["context"])
        if triple is not None:
            gains.append(_gains(model, tokenizer, story, triple))
    if not gains:
        return None
    return UserTripleGain(
        len(gains),
        median(float(gain.mean()) for gain in gains),
        median(float(gain.max()) for gain in gains),
    )


class _TripleChooser:
    """Chooses triples at random: heads and tails are content words, as far as the knowledge table knows any."""

    def __init__(self, tokenizer: IncrementalEncoderTokenizer, seed: int):
        self._tokenizer, self._random = tokenizer, random.Random(seed)
        table = tokenizer.knowledge
        self._relations = table.relations
        self._tails = sorted({tail for graph in table.triples.values() for _, _, tail in graph})

    def choose(self, context: list[str]) -> Triple | None:
        """Return a triple for a story, or None if there is nothing to choose from."""
        words = {word for sentence in context for word in self._tokenizer.tokenize(sentence)}
        heads = sorted(word for word in words if len(word) >= _MIN_LETTERS and word.isalpha())
        tails = [tail for tail in self._tails if tail not in words]
        if not (heads and tails and self._relations):
            return None
        chosen = self._random.choice
        return chosen(heads), chosen(self._relations), chosen(tails)


def _gains(model: Any, tokenizer: IncrementalEncoderTokenizer, story: dict[str, Any], triple: Triple) -> torch.Tensor:
    """Return log p(tail) with the triple less that without it, before each word of the ending."""
    tail = tokenizer.convert_tokens_to_ids(triple[2])
    scores = []
    for triples in (None, [triple]):
        batch = tokenizer([story["context"]], text_target=[story["ending"]], triples=triples, return_tensors="pt").to(
            model.device
        )
        labels = batch.pop("labels")
        decoder_input_ids = model.prepare_decoder_input_ids_from_labels(labels)
        logits = model(**batch, decoder_input_ids=decoder_input_ids, use_cache=False).logits
        scores.append(logits[0].float().log_softmax(dim=-1)[:, tail].cpu())
    return scores[1] - scores[0]
