"""`storyend evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .models import find_model
from .options import (
    AsJson,
    Baseline,
    Confidence,
    ConstantEnding,
    Data,
    DatasetId,
    MaxStories,
    ModelArgument,
    NumBeams,
    Split,
)
from .pages import print_page


def evaluate(
    model: ModelArgument = None,
    data: Data = "embedded",
    split: Split = "test",
    output: Annotated[
        Path | None, typer.Option(help="Directory for the numbers, the table, the endings and files for the Hub.")
    ] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Stories a step.")] = 128,
    num_beams: NumBeams = None,
    no_repeat_ngram_size: Annotated[
        int | None, typer.Option(min=0, help="No n words of an ending come twice; the model's own unless given.")
    ] = None,
    max_new_tokens: Annotated[
        int | None, typer.Option(min=1, help="Most words; the model's own unless given.")
    ] = None,
    max_stories: MaxStories = None,
    num_seeds: Annotated[int, typer.Option(min=0, help="Draws of the sampled softmax; 0 leaves it out.")] = 5,
    num_relation_names: Annotated[
        int,
        typer.Option(min=0, help="Relation names before the words of the sampled softmax: 45 in the authors' code."),
    ] = 45,
    confidence: Confidence = 1000,
    cloze: Annotated[Path | None, typer.Option(help="Story Cloze CSV file, to answer its questions, too.")] = None,
    baseline: Baseline = None,
    constant_ending: ConstantEnding = None,
    name: Annotated[str | None, typer.Option(help="What the table calls the system; by default MODEL.")] = None,
    dataset_id: DatasetId = None,
    as_json: AsJson = False,
) -> None:
    """
    Evaluate a model: perplexity, BLEU, ROUGE-L, variety, use of knowledge and Story Cloze accuracy.

    Example: `storyend evaluate my_model --data prepared --num-beams 4 --cloze cloze_test_val.csv --output results`
    """
    model_name = find_model(model)
    from accelerate import Accelerator

    from hf_storyend.evaluation import EvaluateOptions
    from hf_storyend.evaluation import evaluate as run

    options = EvaluateOptions(
        model=model_name,
        data_dir=data,
        split=split,
        output_dir=None if output is None else str(output),
        batch_size=batch_size,
        num_beams=num_beams,
        no_repeat_ngram_size=no_repeat_ngram_size,
        max_new_tokens=max_new_tokens,
        max_stories=max_stories,
        num_seeds=num_seeds,
        num_relation_names=num_relation_names,
        bootstrap_samples=confidence,
        cloze=None if cloze is None else str(cloze),
        baseline=None if baseline is None else str(baseline),
        constant_ending=constant_ending,
        name=name,
        dataset_id=dataset_id,
    )
    accelerator = Accelerator()
    result = run(options, accelerator=accelerator)
    if not accelerator.is_main_process:
        return
    if as_json:
        typer.echo(result.to_json())
        return
    print_page(result.to_markdown(name or Path(model_name).name))
