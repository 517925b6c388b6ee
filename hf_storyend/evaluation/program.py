"""Whole evaluations by name: of a saved model, and of files of endings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from accelerate import Accelerator
from datasets import DatasetDict
from transformers import AutoModel, AutoTokenizer

from ..data.stories import load_story_cloze
from ..data.tokenised import tokenise_stories
from .cloze import cloze_accuracy
from .evaluate import evaluate
from .floors import best_constant_ending
from .options import EvaluationOptions
from .result import Evaluation
from .scoring import compare_with_baseline, score_endings
from .sources import first_stories, load_split, read_endings

_DEFAULTS = EvaluationOptions()
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
            result, other, tokenizer=tokenizer, num_resamples=options.confidence or _NUM_EXCHANGES
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
                results[name], other, tokenizer=tokenizer, num_resamples=options.confidence or _NUM_EXCHANGES
            )
    return results


def _with_constant(options: EvaluationOptions, training_endings: list[str] | None) -> EvaluationOptions:
    if options.constant_ending or training_endings is None:
        return options
    return replace(options, constant_ending=best_constant_ending(training_endings))
