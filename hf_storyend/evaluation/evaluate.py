"""Whole evaluations by name: of a saved model, and of files of endings."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from accelerate.utils import extract_model_from_parallel
from datasets import Dataset, DatasetDict
from torch import nn
from transformers import AutoModel, AutoTokenizer

from ..data.collator import tokenise_stories
from ..data.stories import load_story_cloze
from ..modeling import IncrementalEncoderTokenizer
from .distributed import Batch, map_stories
from .metrics import best_constant_ending
from .options import EvaluationOptions
from .perplexity import Likelihood, Negatives, batch_likelihoods, perplexity_ratio, sampled_metrics
from .results import Evaluation
from .scoring import compare_with_baseline, first_stories, load_split, read_endings, score_endings
from .significance import ratio_intervals
from .story_cloze import cloze_accuracy

_DEFAULTS = EvaluationOptions()


@dataclass(frozen=True)
class StoryResult:
    """What the model makes of one story."""

    likelihood: Likelihood
    ending: str | None


def evaluate(
    model: nn.Module,
    tokenizer: IncrementalEncoderTokenizer,
    stories: Dataset,
    tokenised: Dataset,
    *,
    accelerator: Accelerator | None = None,
    training_endings: Sequence[str] | None = None,
    options: EvaluationOptions = _DEFAULTS,
) -> Evaluation:
    """
    Evaluate a model on a split. Every process of the accelerator takes a share of the stories and gets the whole
    result, which is the same for any number of them. The model and the random generators are left as they were.

    Args:
        model: The model, bare or wrapped.
        tokenizer: Its tokenizer, whose knowledge the use of knowledge is measured with.
        stories: The split as text: `context` and `ending`.
        tokenised: The same split as `tokenise_stories` gives it.
        accelerator: Of a run with several processes; without it this process does all.
        training_endings: What the model was trained to write, to see how much of it is recited; else that is left out.
        options: What to compute.
    """
    stories, tokenised = _checked(stories, tokenised, options.max_stories)
    start = time.perf_counter()
    results = _run_model(model, tokenizer, stories, tokenised, accelerator, options)
    speed = len(results) / (time.perf_counter() - start)
    likelihoods = [result.likelihood for result in results]
    evaluation = _likelihood_evaluation(likelihoods, options)
    if options.predict_with_generate:
        endings = [result.ending or "" for result in results]
        scored = score_endings(
            stories, endings, tokenizer=tokenizer, training_endings=training_endings, options=options
        )
        for record, likelihood in zip(scored.endings, likelihoods, strict=True):
            record |= {"loss": likelihood.loss, "num_words": likelihood.num_words}
        evaluation = replace(
            scored,
            metrics=evaluation.metrics | scored.metrics,
            intervals=evaluation.intervals | scored.intervals,
        )
    evaluation.metrics["stories_per_second"] = speed
    return evaluation


def _checked(stories: Dataset, tokenised: Dataset, max_stories: int | None) -> tuple[Dataset, Dataset]:
    if len(stories) != len(tokenised):
        raise ValueError(f"`stories` has {len(stories)} rows, `tokenised` {len(tokenised)}: give the same split.")
    if not len(stories):
        raise ValueError("`stories` is empty: there is nothing to evaluate.")
    return first_stories(stories, max_stories), first_stories(tokenised, max_stories)


def _run_model(
    model: nn.Module,
    tokenizer: IncrementalEncoderTokenizer,
    stories: Dataset,
    tokenised: Dataset,
    accelerator: Accelerator | None,
    options: EvaluationOptions,
) -> list[StoryResult]:
    negatives = _negatives(model, len(tokenised), options)

    def work(bare: Any, batch: Batch, rows: list[int]) -> list[StoryResult]:
        endings: list[Any] = [None] * len(rows)
        if options.predict_with_generate:
            endings = _write(bare, tokenizer, batch, stories[rows]["context"], options.generation)
        return list(map(StoryResult, batch_likelihoods(bare, batch, rows, negatives), endings))

    return map_stories(
        work,
        model,
        tokenizer,
        tokenised,
        batch_size=options.batch_size,
        accelerator=accelerator,
        seed=options.seed,
    )


def _write(
    model: Any,
    tokenizer: IncrementalEncoderTokenizer,
    batch: Batch,
    contexts: list[list[str]],
    generation: dict[str, Any],
) -> list[str]:
    """The endings a model writes, as text; names get the case they have in the context."""
    inputs = {name: tensor for name, tensor in batch.items() if name != "labels"}
    endings = model.generate(**inputs, **generation)
    if len(endings) != len(contexts):
        raise ValueError(f"`generation` gives {len(endings)} endings for {len(contexts)} stories: ask for one each.")
    return tokenizer.batch_decode(endings, skip_special_tokens=True, context=contexts)


def _negatives(model: nn.Module, num_stories: int, options: EvaluationOptions) -> Negatives | None:
    if not options.num_seeds:
        return None
    bare = extract_model_from_parallel(model)
    num_words, device = bare.config.vocab_size, next(bare.parameters()).device
    negatives = Negatives.draw(
        num_stories,
        num_words,
        options.num_sampled_classes,
        options.num_seeds,
        options.seed,
        options.num_relation_names,
    )
    return negatives.to(device)


def _likelihood_evaluation(likelihoods: list[Likelihood], options: EvaluationOptions) -> Evaluation:
    ratio, intervals = perplexity_ratio(likelihoods), {}
    if options.bootstrap_samples:
        intervals = ratio_intervals({"perplexity": ratio}, options.bootstrap_samples, options.seed)
    return Evaluation(
        metrics={"perplexity": ratio.value, **sampled_metrics(likelihoods)},
        intervals=intervals,
        num_stories=len(likelihoods),
    )


# Exchanges of a paired test where no number of resamples is given.
_NUM_EXCHANGES = 1000


def evaluate_pretrained(
    model_name: str,
    data: str,
    *,
    split: str = "test",
    accelerator: Accelerator | None = None,
    cloze: str | Path | None = None,
    baseline: str | Path | None = None,
    options: EvaluationOptions = _DEFAULTS,
) -> Evaluation:
    """
    Load a model and stories and evaluate; with several processes, on each of them.

    Args:
        model_name: A directory or a name on the Hub.
        data: What `load_stories` takes, or a directory that `storyend prepare` wrote.
        split: Which of its splits.
        accelerator: By default one that takes what it finds: a GPU, or the processes of a launcher.
        cloze: A Story Cloze file whose questions are to be answered, too.
        baseline: A file of endings of another system, to test the difference.
        options: What to compute. The constant ending is by default the best one of a split `train`.
    """
    accelerator = accelerator or Accelerator()
    stories, training_endings = load_split(data, split)
    stories = first_stories(stories, options.max_stories)
    # Whatever can't be read should be known before hours of work.
    other = read_endings(baseline, stories, options.max_stories) if baseline else None
    questions = load_story_cloze(cloze) if cloze else None
    tokenizer = AutoTokenizer.from_pretrained(model_name)
    model = AutoModel.from_pretrained(model_name).to(accelerator.device)
    with accelerator.main_process_first():
        tokenised = tokenise_stories(DatasetDict({"stories": stories}), tokenizer)["stories"]
    result = evaluate(
        model,
        tokenizer,
        stories,
        tokenised,
        accelerator=accelerator,
        training_endings=training_endings,
        options=_with_constant(options, training_endings),
    )
    if questions is not None:
        result.metrics |= cloze_accuracy(
            model, tokenizer, questions, accelerator=accelerator, batch_size=options.batch_size
        )
    if other is not None:
        result.significance = compare_with_baseline(
            result, other, tokenizer=tokenizer, num_resamples=options.bootstrap_samples or _NUM_EXCHANGES
        )
    return result


def score_files(
    files: Mapping[str, str | Path],
    data: str,
    *,
    split: str = "test",
    model_name: str | None = None,
    baseline: str | Path | None = None,
    options: EvaluationOptions = _DEFAULTS,
) -> dict[str, Evaluation]:
    """
    Evaluate the endings of systems, by their names; arguments as for `evaluate_pretrained`, `model_name` being the
    model whose knowledge the use of knowledge is measured with.
    """
    tokenizer = AutoTokenizer.from_pretrained(model_name) if model_name else None
    stories, training_endings = load_split(data, split)
    stories = first_stories(stories, options.max_stories)
    other = read_endings(baseline, stories, options.max_stories) if baseline else None
    read = {name: read_endings(path, stories, options.max_stories) for name, path in files.items()}
    options = _with_constant(options, training_endings)
    results = {}
    for name, records in read.items():
        endings = [record["ending"] for record in records]
        results[name] = score_endings(
            stories, endings, tokenizer=tokenizer, training_endings=training_endings, options=options
        )
        if other is not None:
            results[name].significance = compare_with_baseline(
                results[name], other, tokenizer=tokenizer, num_resamples=options.bootstrap_samples or _NUM_EXCHANGES
            )
    return results


def _with_constant(options: EvaluationOptions, training_endings: list[str] | None) -> EvaluationOptions:
    if options.constant_ending or training_endings is None:
        return options
    return replace(options, constant_ending=best_constant_ending(training_endings))
