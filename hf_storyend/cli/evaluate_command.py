"""`storyend evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markdown import Markdown

from .models import find_model


def evaluate(
    model: Annotated[
        str | None, typer.Argument(help="Directory of a model, or its name on the Hub; by default the package's own.")
    ] = None,
    data: Annotated[
        str,
        typer.Option(help="Stories: whatever `storyend prepare --stories` takes, or a directory that it has written."),
    ] = "embedded",
    split: Annotated[str, typer.Option(help="Which of their splits.")] = "test",
    output: Annotated[
        Path | None, typer.Option(help="Directory for the numbers, the table, the endings and files for the Hub.")
    ] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Stories a step.")] = 128,
    num_beams: Annotated[int | None, typer.Option(min=1, help="Beams; the model's own setting unless given.")] = None,
    no_repeat_ngram_size: Annotated[
        int | None, typer.Option(min=0, help="No n words of an ending come twice; the model's own unless given.")
    ] = None,
    max_new_tokens: Annotated[
        int | None, typer.Option(min=1, help="Most words; the model's own unless given.")
    ] = None,
    max_stories: Annotated[int | None, typer.Option(min=1, help="The first so many stories only.")] = None,
    num_seeds: Annotated[int, typer.Option(min=0, help="Draws of the sampled softmax; 0 leaves it out.")] = 5,
    confidence: Annotated[
        int, typer.Option(min=0, help="Resamples for confidence intervals and tests; 0 means no intervals.")
    ] = 1000,
    cloze: Annotated[Path | None, typer.Option(help="Story Cloze CSV file, to answer its questions, too.")] = None,
    baseline: Annotated[
        Path | None, typer.Option(help="Endings of another system for the same stories, to test the difference.")
    ] = None,
    constant_ending: Annotated[
        str | None, typer.Option(help="What the trivial system writes; by default the best constant training ending.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="What the table calls the system; by default MODEL.")] = None,
    dataset_id: Annotated[
        str | None, typer.Option(help="The stories' id on the Hub, for its files; by default the name of DATA.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
) -> None:
    """
    Evaluate a model: perplexity, BLEU, ROUGE-L, variety, use of knowledge and Story Cloze accuracy.

    Example: `storyend evaluate my_model --data prepared --num-beams 4 --cloze cloze_test_val.csv --output results`
    """
    model_name = find_model(model)
    from accelerate import Accelerator

    from hf_storyend.evaluation import EvaluationOptions, evaluate_pretrained, save_evaluation

    generation = {
        "num_beams": num_beams,
        "no_repeat_ngram_size": no_repeat_ngram_size,
        "max_new_tokens": max_new_tokens,
    }
    options = EvaluationOptions(
        batch_size=batch_size,
        generation={option: value for option, value in generation.items() if value is not None},
        max_stories=max_stories,
        num_seeds=num_seeds,
        confidence=confidence,
        constant_ending=constant_ending,
    )
    accelerator = Accelerator()
    result = evaluate_pretrained(
        model_name, data, split=split, accelerator=accelerator, cloze=cloze, baseline=baseline, options=options
    )
    if not accelerator.is_main_process:
        return
    title = name or Path(model_name).name
    if output is not None:
        save_evaluation(result, output, name=title, dataset_id=dataset_id or Path(data).stem, split=split)
    if as_json:
        typer.echo(result.to_json())
        return
    Console().print(Markdown(result.to_markdown(title)))
