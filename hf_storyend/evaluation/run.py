"""
Evaluations: of a saved model (`evaluate`), of a model in memory (`evaluate_model`), of files of endings (`score`).

`evaluate_model` shares the stories out to the processes of an accelerator (`distributed`), computes likelihoods
(`likelihood`, `sampled_perplexity`), generates endings and scores them (`scoring`, `text_metrics`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from accelerate import Accelerator
from accelerate.utils import extract_model_from_parallel
from datasets import Dataset, DatasetDict
from torch import nn
from transformers import AutoTokenizer

from ..data.batching import tokenise_stories
from ..data.sources import dataset_name
from ..data.stories import load_story_cloze
from ..modeling import IncrementalEncoderTokenizer
from ..modeling.candidates import generate_endings
from ..modeling.decoding import default_arguments, describe_decoding
from ..modeling.endings import write_texts
from ..pretrained import EXAMPLE_STORIES, find_model, load, register
from ..processes import start_accelerator
from .ablations import ablate
from .distributed import Batch, map_stories
from .gender_swap import measure_gender_swap
from .likelihood import Likelihood, batch_likelihoods, cloze_accuracy, perplexity_ratio, sampled_metrics
from .loading import first_stories, load_split, load_training_stories, read_endings
from .naming import name_systems
from .notes import note_evaluation
from .options import EvaluateOptions, EvaluationOptions, ScoreOptions
from .results import Evaluation, save_evaluation
from .sampled_perplexity import SampledClasses
from .scoring import best_constant_ending, compare_with_baseline, score_endings
from .significance import ratio_intervals

# Permutations of a paired test where no number of bootstrap samples is given.
_NUM_PERMUTATIONS = 1000


def evaluate(options: EvaluateOptions | None = None, *, accelerator: Accelerator | None = None) -> Evaluation:
    """
    Load a model and stories, evaluate the model, and save the results if there is an `output_dir`.

    The directory of the model then notes them, too, for its card.

    ```python
    >>> evaluation = evaluate(EvaluateOptions(model="my_model", data_dir="prepared", num_beams=4))
    >>> print(evaluation.to_markdown())
    ```

    Args:
        options: The model, the stories and the settings; default: the package's model on its own stories.
        accelerator: Default: one that uses the GPU or the processes of the launcher.
    """
    options, accelerator = options or EvaluateOptions(), accelerator or start_accelerator()
    model_name, settings = find_model(options.model), options.evaluation_options()
    stories, training_endings = load_split(options.data_dir, options.split)
    stories = first_stories(stories, options.max_stories)
    # All files are read before hours of computation.
    baseline = read_endings(options.baseline, stories, options.max_stories) if options.baseline else None
    questions = load_story_cloze(options.cloze) if options.cloze else None
    training_stories = load_training_stories(options.data_dir) if options.ablations else None
    model, tokenizer = load(model_name)
    model.to(accelerator.device)
    with accelerator.main_process_first():
        tokenised = tokenise_stories(DatasetDict({"stories": stories}), tokenizer)["stories"]
    result = evaluate_model(
        model,
        tokenizer,
        stories,
        tokenised,
        accelerator=accelerator,
        training_endings=training_endings,
        options=_with_constant_ending(settings, training_endings),
    )
    if questions is not None:
        result.metrics |= cloze_accuracy(
            model, tokenizer, questions, accelerator=accelerator, batch_size=options.batch_size
        )
    if options.ablations:
        result.ablations = ablate(
            model,
            tokenizer,
            stories,
            training_stories=training_stories,
            accelerator=accelerator,
            batch_size=options.batch_size,
            seed=options.seed,
        )
        result.metrics |= result.ablations.metrics()
    if baseline is not None:
        result.significance = _compare(result, baseline, tokenizer, settings)
    if not accelerator.is_main_process:
        return result
    if options.gender_swap:
        result.gender_swap = measure_gender_swap(model, tokenizer)
    if options.output_dir is not None:
        _save(result, options.output_dir, options.name or Path(model_name).name, options)
        note_evaluation(
            model_name,
            result,
            dataset_id=options.dataset_id or dataset_name(options.data_dir),
            split=options.split,
            decoding=describe_decoding(result.generation),
            examples=_example_endings(model, tokenizer),
        )
    return result


def score(options: ScoreOptions | None = None) -> dict[str, Evaluation]:
    """
    Score files of endings, and save the results of each system in a subdirectory of `output_dir`, if there is one.

    Args:
        options: The files, the stories and the settings; default: endings of the package's model.

    Returns:
        The evaluation of each system by its name.
    """
    options = options or ScoreOptions()
    settings = options.evaluation_options()
    tokenizer = _load_tokenizer(options.model) if options.model else None
    stories, training_endings = load_split(options.data_dir, options.split)
    stories = first_stories(stories, options.max_stories)
    baseline = read_endings(options.baseline, stories, options.max_stories) if options.baseline else None
    with endings_files(options.endings, options.data_dir, options.split, options.max_stories) as files:
        names = _system_names(options, files)
        records = [read_endings(path, stories, options.max_stories) for path in files]
    settings = _with_constant_ending(settings, training_endings)
    results = {}
    for name, system_records in zip(names, records, strict=True):
        result = results[name] = score_endings(
            stories,
            [record["ending"] for record in system_records],
            tokenizer=tokenizer,
            training_endings=training_endings,
            options=settings,
        )
        if baseline is not None:
            result.significance = _compare(result, baseline, tokenizer, settings)
        if options.output_dir is not None:
            _save(result, Path(options.output_dir) / name, name, options)
    return results


@contextmanager
def endings_files(
    paths: Sequence[str | Path], data_dir: str = "embedded", split: str = "test", max_stories: int | None = None
) -> Iterator[list[Path]]:
    """Yield the given files or, if there are none, a temporary one with endings of the package's model."""
    if paths:
        yield [Path(path) for path in paths]
        return
    options = EvaluateOptions(
        data_dir=data_dir, split=split, max_stories=max_stories, num_seeds=0, bootstrap_samples=0
    )
    records = evaluate(options).endings
    with TemporaryDirectory() as directory:
        path = Path(directory) / "default_model.jsonl"
        path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
        yield [path]


def _system_names(options: ScoreOptions, files: Sequence[Path]) -> list[str]:
    names = list(options.names) or name_systems(files)
    if len(names) != len(files) or len(set(names)) < len(names):
        raise ValueError(f"`names` must give {len(files)} different names, one for each file; got {names}.")
    if options.output_dir is not None and any(Path(name).name != name for name in names):
        raise ValueError(f"`names` must be names that can be directories inside {options.output_dir}; got {names}.")
    return names


def _load_tokenizer(model: str) -> IncrementalEncoderTokenizer:
    register()
    return AutoTokenizer.from_pretrained(find_model(model))


def _with_constant_ending(settings: EvaluationOptions, training_endings: list[str] | None) -> EvaluationOptions:
    if settings.constant_ending or training_endings is None:
        return settings
    return replace(settings, constant_ending=best_constant_ending(training_endings))


def _compare(
    result: Evaluation,
    baseline: list[dict[str, Any]],
    tokenizer: IncrementalEncoderTokenizer | None,
    settings: EvaluationOptions,
) -> dict[str, dict[str, float]]:
    num_resamples = settings.bootstrap_samples or _NUM_PERMUTATIONS
    return compare_with_baseline(result, baseline, tokenizer=tokenizer, num_resamples=num_resamples)


def _save(result: Evaluation, output_dir: str | Path, name: str, options: EvaluateOptions | ScoreOptions) -> None:
    dataset_id = options.dataset_id or dataset_name(options.data_dir)
    save_evaluation(result, output_dir, name=name, dataset_id=dataset_id, split=options.split)


def _example_endings(model: Any, tokenizer: IncrementalEncoderTokenizer) -> dict[str, str]:
    """Return endings of the package's example stories, for the card: those of the evaluation may not be shown."""
    endings = write_texts(model, tokenizer, EXAMPLE_STORIES)
    return {story: texts[0] for story, texts in zip(EXAMPLE_STORIES, endings, strict=True)}


@dataclass(frozen=True)
class _StoryResult:
    likelihood: Likelihood
    ending: str | None


def evaluate_model(
    model: nn.Module,
    tokenizer: IncrementalEncoderTokenizer,
    stories: Dataset,
    tokenised: Dataset,
    *,
    accelerator: Accelerator | None = None,
    training_endings: Sequence[str] | None = None,
    options: EvaluationOptions | None = None,
) -> Evaluation:
    """
    Evaluate a model on a split of stories. The model's modes and all random states are preserved.

    Args:
        model: The model, bare or wrapped.
        tokenizer: Its tokenizer, whose knowledge table measures the use of knowledge.
        stories: The split as text: `context` and `ending`.
        tokenised: The same split from `tokenise_stories`.
        accelerator: Shares the stories out to its processes, each of which gets the whole result; without it, this
            process computes all.
        training_endings: For the overlap with the training data; without them, that is not measured.
        options: Settings of the metrics.
    """
    options = options or EvaluationOptions()
    stories, tokenised = _check_split(stories, tokenised, options.max_stories)
    start = time.perf_counter()
    generation = default_arguments(extract_model_from_parallel(model), options.generation, options.decoding)
    results = _run_model(model, tokenizer, stories, tokenised, accelerator, replace(options, generation=generation))
    stories_per_second = len(results) / (time.perf_counter() - start)
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
            generation=generation,
        )
    evaluation.metrics["stories_per_second"] = stories_per_second
    return evaluation


def _check_split(stories: Dataset, tokenised: Dataset, max_stories: int | None) -> tuple[Dataset, Dataset]:
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
) -> list[_StoryResult]:
    """Compute the likelihood of each reference and, if asked for, generate an ending."""
    sampled_classes = _sample_classes(model, len(tokenised), options)

    def run_batch(unwrapped: Any, batch: Batch, rows: list[int]) -> list[_StoryResult]:
        endings: list[Any] = [None] * len(rows)
        if options.predict_with_generate:
            endings = _generate(unwrapped, tokenizer, batch, stories[rows]["context"], options.generation)
        return list(map(_StoryResult, batch_likelihoods(unwrapped, batch, rows, sampled_classes), endings))

    return map_stories(
        run_batch,
        model,
        tokenizer,
        tokenised,
        batch_size=options.batch_size,
        accelerator=accelerator,
        seed=options.seed,
    )


def _generate(
    model: Any,
    tokenizer: IncrementalEncoderTokenizer,
    batch: Batch,
    contexts: list[list[str]],
    generation: dict[str, Any],
) -> list[str]:
    """Generate endings as text, truecased as in the context."""
    inputs = {name: tensor for name, tensor in batch.items() if name != "labels"}
    endings, _ = generate_endings(model, inputs, generation)
    if len(endings) != len(contexts):
        raise ValueError(f"`generation` gives {len(endings)} endings for {len(contexts)} stories: ask for one each.")
    return tokenizer.batch_decode(endings, skip_special_tokens=True, context=contexts)


def _sample_classes(model: nn.Module, num_stories: int, options: EvaluationOptions) -> SampledClasses | None:
    if not options.num_seeds:
        return None
    unwrapped = extract_model_from_parallel(model)
    sampled_classes = SampledClasses.sample(
        num_stories,
        unwrapped.config.vocab_size,
        options.num_sampled_classes,
        options.num_seeds,
        options.seed,
        options.num_relation_names,
    )
    return sampled_classes.to(next(unwrapped.parameters()).device)


def _likelihood_evaluation(likelihoods: list[Likelihood], options: EvaluationOptions) -> Evaluation:
    perplexity, intervals = perplexity_ratio(likelihoods), {}
    if options.bootstrap_samples:
        intervals = ratio_intervals({"perplexity": perplexity}, options.bootstrap_samples, options.seed)
    return Evaluation(
        metrics={"perplexity": perplexity.value, **sampled_metrics(likelihoods)},
        intervals=intervals,
        num_stories=len(likelihoods),
    )
