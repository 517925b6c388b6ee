"""
Ablations: how much worse a model predicts the endings without its knowledge, without a sentence of the story, or with
attention that does not choose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from accelerate import Accelerator
from accelerate.utils import extract_model_from_parallel
from datasets import Dataset, DatasetDict
from torch import nn

from ..data.batching import tokenise_stories
from ..data.rare_words import have_rare_words
from ..data.stories import STORY_FEATURES
from ..modeling import IncrementalEncoderTokenizer
from .ablation_results import AS_IT_IS, RARE_WORDS, AblationRow, Ablations, AblationSubset
from .distributed import Batch, map_stories
from .likelihood import batch_word_losses
from .triple_ablations import NoTriples, OtherTriples, RandomTails, are_tails
from .uniform_attention import uniform_attention
from .user_triples import measure_user_triples

# Losses of the words of each ending.
WordLosses = list[np.ndarray]


def ablate(
    model: nn.Module,
    tokenizer: IncrementalEncoderTokenizer,
    stories: Dataset,
    *,
    training_stories: Dataset | None = None,
    accelerator: Accelerator | None = None,
    batch_size: int = 128,
    seed: int = 0,
) -> Ablations:
    """
    Measure the perplexity of the endings as it is and under each ablation that applies to the system.

    ```python
    >>> print(ablate(model, tokenizer, stories).to_markdown())
    ```

    Args:
        model: The model, bare or wrapped.
        tokenizer: Its tokenizer.
        stories: The split as text: `context` and `ending`.
        training_stories: Which words are rare is counted in these; without them, there is no such subset.
        accelerator: Shares the stories out to its processes, each of which gets the whole result.
        batch_size: Stories in a batch, over all processes. It changes the speed, not the result.
        seed: Seed of other words' triples and of random tails.
    """
    if not len(stories):
        raise ValueError("`stories` is empty: there is nothing to measure.")
    run = _Runner(model, tokenizer, accelerator, batch_size)
    tokenised = run.tokenise(stories)
    unwrapped = extract_model_from_parallel(model)
    changes = list(_changes(unwrapped, tokenizer, tokenised, seed))
    num_sentences = max(map(len, stories["context"]))
    run.num_passes = 1 + len(changes) + (num_sentences if num_sentences > 1 else 0)
    losses, tails = run.losses_and_tails(tokenised)
    ablated = {change.name: run.losses(tokenised, change) for change in changes}
    for number in range(1, num_sentences + 1) if num_sentences > 1 else ():
        ablated[f"without sentence {number}"] = _without_sentence(run, stories, losses, number)
    result = _summarise({AS_IT_IS: losses, **ablated}, tails, *_rare_stories(stories, training_stories, tokenizer))
    if not _reads_triples(unwrapped.config):
        return result
    gain = measure_user_triples(unwrapped, tokenizer, stories, seed=seed)
    if gain is None:
        return result
    return replace(result, user_triple_gain=gain.median, notes=(*result.notes, gain.describe()))


def _reads_triples(config: Any) -> bool:
    return config.knowledge is not None or config.tail_pointer


@dataclass(frozen=True)
class _Change:
    """One ablation of batches, or of the model within a context."""

    name: str
    batch: Callable[[Batch, list[int]], Batch] = lambda batch, rows: batch
    model: Callable[[], AbstractContextManager[None]] = nullcontext


def _changes(model: Any, tokenizer: IncrementalEncoderTokenizer, tokenised: Dataset, seed: int) -> Iterator[_Change]:
    """Yield the ablations of triples and attention that apply to a model."""
    config = model.config
    if _reads_triples(config):
        yield _Change("no triples", NoTriples(tokenizer))
        yield _Change("other words' triples", OtherTriples(tokenizer, tokenised, seed))
        yield _Change("random tails", RandomTails(tokenizer, config.vocab_size, seed))
    yield _Change("uniform state attention", model=partial(uniform_attention, model, "state"))
    if config.knowledge is not None:
        yield _Change("uniform knowledge attention", model=partial(uniform_attention, model, "knowledge"))


class _Runner:
    """Runs the model over stories, one pass for each ablation."""

    def __init__(
        self,
        model: nn.Module,
        tokenizer: IncrementalEncoderTokenizer,
        accelerator: Accelerator | None,
        batch_size: int,
    ):
        self._model, self._tokenizer = model, tokenizer
        self._accelerator, self._batch_size = accelerator, batch_size
        self.num_passes, self._num_started = 1, 0

    def tokenise(self, stories: Dataset) -> Dataset:
        # One process tokenises, the others then read its cache.
        with self._accelerator.main_process_first() if self._accelerator else nullcontext():
            return tokenise_stories(DatasetDict({"ablations": stories}), self._tokenizer)["ablations"]

    def losses_and_tails(self, tokenised: Dataset) -> tuple[WordLosses, list[np.ndarray]]:
        """Return the losses of the words as they are, and which of these words are tails."""

        def run_batch(model: Any, batch: Batch, rows: list[int]) -> list[tuple[np.ndarray, np.ndarray]]:
            is_tail, is_word = are_tails(batch, model.config.vocab_size), batch["labels"] >= 0
            tails = [own[words].cpu().numpy() for own, words in zip(is_tail, is_word, strict=True)]
            return list(zip(batch_word_losses(model, batch), tails, strict=True))

        losses, tails = zip(*self._map(run_batch, tokenised, AS_IT_IS), strict=True)
        return list(losses), list(tails)

    def losses(self, tokenised: Dataset, change: _Change) -> WordLosses:
        """Return the losses of the words under an ablation."""

        def run_batch(model: Any, batch: Batch, rows: list[int]) -> WordLosses:
            return batch_word_losses(model, change.batch(batch, rows))

        with change.model():
            return self._map(run_batch, tokenised, change.name)

    def _map(
        self, run_batch: Callable[[Any, Batch, list[int]], list[Any]], tokenised: Dataset, name: str
    ) -> list[Any]:
        self._num_started += 1
        return map_stories(
            run_batch,
            self._model,
            self._tokenizer,
            tokenised,
            batch_size=self._batch_size,
            accelerator=self._accelerator,
            description=f"Ablation {self._num_started} of {self.num_passes}, {name}",
        )


def _without_sentence(run: _Runner, stories: Dataset, losses: WordLosses, number: int) -> WordLosses:
    """Return the losses without a sentence, counted from 1; stories that lack it, or have no other, keep theirs."""
    rows = [row for row, context in enumerate(stories["context"]) if len(context) >= max(number, 2)]
    chosen = stories.select(rows)
    shortened = Dataset.from_dict(
        {
            "context": [[*context[: number - 1], *context[number:]] for context in chosen["context"]],
            "ending": list(chosen["ending"]),
        },
        features=STORY_FEATURES,
    )
    changed = run.losses(run.tokenise(shortened), _Change(f"without sentence {number}"))
    by_row = dict(zip(rows, changed, strict=True))
    return [by_row.get(row, own) for row, own in enumerate(losses)]


def _rare_stories(
    stories: Dataset, training_stories: Dataset | None, tokenizer: IncrementalEncoderTokenizer
) -> tuple[list[int], tuple[str, ...]]:
    """Return the rows of the stories with rare words, and if there are none the reason."""
    if training_stories is None:
        return [], (f"{RARE_WORDS}: not measured, there are no training stories to count words in",)
    flags = have_rare_words(stories, training_stories, tokenizer)
    rows = [row for row, is_rare in enumerate(flags) if is_rare]
    return rows, () if rows else (f"{RARE_WORDS}: there are none",)


def _summarise(
    losses: dict[str, WordLosses], tails: list[np.ndarray], rare_rows: list[int], notes: tuple[str, ...]
) -> Ablations:
    subsets = {"stories": range(len(tails)), RARE_WORDS: rare_rows}
    found = [_subset(name, losses, tails, rows) for name, rows in subsets.items() if rows]
    return Ablations(tuple(found), notes)


def _subset(name: str, losses: dict[str, WordLosses], tails: list[np.ndarray], rows: Sequence[int]) -> AblationSubset:
    is_tail = np.concatenate([tails[row] for row in rows])
    of_words = {ablation: np.concatenate([own[row] for row in rows]) for ablation, own in losses.items()}
    before = of_words[AS_IT_IS]
    return AblationSubset(
        name=name,
        num_stories=len(rows),
        num_words=len(is_tail),
        num_tails=int(is_tail.sum()),
        rows=tuple(_row(ablation, own, before, is_tail) for ablation, own in of_words.items()),
    )


def _row(name: str, losses: np.ndarray, before: np.ndarray, is_tail: np.ndarray) -> AblationRow:
    values: dict[str, float | None] = {"perplexity": _perplexity(losses), "change": _change(losses, before)}
    if is_tail.any():
        losses, before = losses[is_tail], before[is_tail]
        values |= {"tail_perplexity": _perplexity(losses), "tail_change": _change(losses, before)}
    if name == AS_IT_IS:
        values |= {"change": None, "tail_change": None}
    return AblationRow(name, **values)  # type: ignore[arg-type]


def _perplexity(losses: np.ndarray) -> float:
    return float(np.exp(losses.mean()))


def _change(losses: np.ndarray, before: np.ndarray) -> float:
    """Return the change of the perplexity in percent."""
    return float(100 * np.expm1(losses.mean() - before.mean()))
