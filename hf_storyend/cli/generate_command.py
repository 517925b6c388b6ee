"""`storyend generate`."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from .models import find_model
from .options import AsJson, ModelOption, NumBeams
from .triples import parse_triples


def generate(
    stories: Annotated[
        list[str] | None,
        typer.Argument(help="A story, all its sentences in one string; several; by default three of our own."),
    ] = None,
    model: ModelOption = None,
    num_endings: Annotated[int, typer.Option(min=1, help="Endings for each story.")] = 1,
    num_beams: NumBeams = None,
    sample: Annotated[bool, typer.Option(help="Draw words at random, by their probability.")] = False,
    temperature: Annotated[
        float | None, typer.Option(min=0.01, help="With `--sample`: below 1 likelier words, above 1 less likely ones.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="With `--sample`: another one, other endings.")] = 0,
    triple: Annotated[
        list[str] | None, typer.Option(help="`head,Relation,tail` to know besides. Give it again for more.")
    ] = None,
    num_evidence: Annotated[int, typer.Option(min=0, help="Triples to show for each ending.")] = 3,
    as_json: AsJson = False,
) -> None:
    """
    Write endings, each with the triples that it read most.

    Example: `storyend generate "Mei put a cake in the oven. She fell asleep." --num-endings 3 --sample`
    """
    if temperature is not None and not sample:
        raise ValueError("`--temperature` is for endings drawn at random: give `--sample`, too.")
    name, triples = find_model(model), parse_triples("--triple", triple)
    import torch
    from transformers import AutoModel, AutoTokenizer
    from transformers.utils import logging

    from hf_storyend import StoryEndingPipeline
    from hf_storyend.pretrained import EXAMPLE_STORIES

    logging.disable_progress_bar()
    network = AutoModel.from_pretrained(name)
    own_beams = network.generation_config.num_beams or 1
    generation = _generation_options(num_endings, num_beams, own_beams, sample, temperature)
    write = StoryEndingPipeline(model=network, tokenizer=AutoTokenizer.from_pretrained(name))
    torch.manual_seed(seed)
    texts = stories or list(EXAMPLE_STORIES)
    known = {} if triples is None else {"triples": triples}
    results = [write(text, num_evidence=num_evidence, **known, **generation) for text in texts]
    if as_json:
        pairs = zip(texts, results, strict=True)
        typer.echo(json.dumps([{"story": text, "endings": endings} for text, endings in pairs], indent=1))
        return
    console = Console(highlight=False)
    for text, endings in zip(texts, results, strict=True):
        _show(console, text, endings)


def _generation_options(
    num_endings: int, num_beams: int | None, own_beams: int, sample: bool, temperature: float | None
) -> dict[str, Any]:
    if not sample and (num_beams or own_beams) < num_endings:
        raise ValueError(f"{num_endings} endings need `--sample` or `--num-beams {num_endings}`.")
    options: dict[str, Any] = {"num_return_sequences": num_endings}
    if sample:
        # The model's own beams would search instead of drawing.
        options |= {"do_sample": True, "num_beams": num_beams or 1}
    elif num_beams is not None:
        options["num_beams"] = num_beams
    return options if temperature is None else {**options, "temperature": temperature}


def _show(console: Console, story: str, endings: list[dict[str, Any]]) -> None:
    console.print(escape(story), style="dim", soft_wrap=True)
    for ending in endings:
        console.print(
            f"  [bold green]{escape(ending['ending'])}[/]  [dim]({ending['score']:.2f} a word)[/]", soft_wrap=True
        )
        for item in ending["evidence"]:
            triple = f"{item['head']} {item['relation']} {item['tail']}"
            console.print(f"      {item['weight']:6.1%}  {escape(triple)}  [dim]at {escape(item['word'])!r}[/]")
    console.print()
