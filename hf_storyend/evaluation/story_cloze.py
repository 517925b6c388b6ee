"""The Story Cloze Test: which of two endings does the model find likelier?"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
from accelerate import Accelerator
from datasets import Dataset, DatasetDict
from torch import nn

from ..data.collator import tokenise_stories
from ..data.stories import STORY_FEATURES
from ..modeling import IncrementalEncoderTokenizer
from .distributed import Batch, map_stories
from .perplexity import Likelihood, batch_likelihoods


def cloze_accuracy(
    model: nn.Module,
    tokenizer: IncrementalEncoderTokenizer,
    questions: Dataset,
    *,
    accelerator: Accelerator | None = None,
    batch_size: int = 128,
) -> dict[str, float]:
    """
    Percent of questions (see `load_story_cloze`) whose right ending is the likelier one, by the sum of its words' log
    likelihoods and by their mean. Equally likely endings count half.
    """
    if not len(questions):
        raise ValueError("`questions` is empty: there is nothing to answer.")
    contexts, endings = list(questions["context"]), [*questions["ending1"], *questions["ending2"]]
    stories = Dataset.from_dict({"context": contexts * 2, "ending": endings}, features=STORY_FEATURES)
    # One process tokenises, the others then read its cache.
    with accelerator.main_process_first() if accelerator else nullcontext():
        tokenised = tokenise_stories(DatasetDict({"cloze": stories}), tokenizer)["cloze"]

    def work(bare: Any, batch: Batch, rows: list[int]) -> list[Likelihood]:
        return batch_likelihoods(bare, batch, rows, None)

    likelihoods = map_stories(work, model, tokenizer, tokenised, batch_size=batch_size, accelerator=accelerator)
    losses = np.array([one.loss for one in likelihoods]).reshape(2, -1)
    num_words = np.array([one.num_words for one in likelihoods]).reshape(2, -1)
    right = np.array(questions["right"])
    return {
        "cloze_accuracy": _accuracy(losses, right),
        "cloze_accuracy_normalised": _accuracy(losses / num_words, right),
    }


def _accuracy(losses: np.ndarray, right: np.ndarray) -> float:
    """From losses [2, questions] of the endings and the numbers, 1 or 2, of the right ones."""
    advantage = np.where(right == 1, losses[1] - losses[0], losses[0] - losses[1])
    return float(100 * np.mean((np.sign(advantage) + 1) / 2))
