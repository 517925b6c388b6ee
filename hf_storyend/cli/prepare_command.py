"""`storyend prepare`."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.console import Console
from rich.markdown import Markdown

if TYPE_CHECKING:
    from hf_storyend.knowledge import Policy


class Encoder(StrEnum):
    """Knowledge encoders, and none."""

    graph_attention = "graph_attention"
    contextual_attention = "contextual_attention"
    none = "none"


class KeptTriples(StrEnum):
    """Which triples of a word stay where it has too many."""

    weight = "weight"
    tail_frequency = "tail_frequency"
    weight_and_frequency = "weight_and_frequency"


def prepare(
    stories: Annotated[
        str,
        typer.Option(
            help="CSV of ROCStories or the Story Cloze Test, JSON Lines, `.post`/`.response`, plain text, a directory "
            "of such files named after splits, a saved dataset, a dataset on the Hub, or `embedded`."
        ),
    ] = "embedded",
    conceptnet: Annotated[
        list[Path] | None,
        typer.Option(help="Triples: the ConceptNet dump (plain or gzip) or a smaller file. Give it again for more."),
    ] = None,
    output: Annotated[Path, typer.Option(help="Directory to write.")] = Path("prepared"),
    glove: Annotated[Path | None, typer.Option(help="Word vectors as text, plain or gzip.")] = None,
    vocab_size: Annotated[int, typer.Option(min=5, help="Words, special symbols included.")] = 10_000,
    lower_case: Annotated[bool, typer.Option(help="A vocabulary in lower case, or as written.")] = True,
    split_contractions: Annotated[bool, typer.Option(help="`didn't` as `did` and `n't`, or as one word.")] = True,
    knowledge: Annotated[Encoder, typer.Option(help="Knowledge encoder of the model.")] = Encoder.contextual_attention,
    max_triples: Annotated[int, typer.Option(min=1, help="Most triples a word.")] = 10,
    policy: Annotated[KeptTriples, typer.Option(help="Which triples stay.")] = KeptTriples.weight_and_frequency,
    relation: Annotated[
        list[str] | None, typer.Option(help="Keep only this relation. Give it again for more.")
    ] = None,
    min_weight: Annotated[float | None, typer.Option(help="Leave out triples of a smaller weight.")] = None,
    inverse: Annotated[bool, typer.Option(help="Let every triple count from its tail too.")] = False,
    symmetric: Annotated[bool, typer.Option(help="Let triples of symmetric relations count from their tail.")] = False,
    multi_word: Annotated[bool, typer.Option(help="Match concepts of several words in text.")] = False,
    hidden_size: Annotated[int, typer.Option(min=1)] = 512,
    num_layers: Annotated[int, typer.Option(min=1)] = 2,
    embedding_size: Annotated[int | None, typer.Option(min=1, help="That of `--glove`, or 200.")] = None,
    num_train: Annotated[
        int | None, typer.Option(min=1, help="Training stories, where there are no splits (the paper: 90000).")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the split and all that is drawn.")] = 0,
    num_proc: Annotated[int | None, typer.Option(min=1, help="Processes that tokenise.")] = None,
    overwrite: Annotated[bool, typer.Option(help="Replace what stands in the output directory.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """
    Turn stories, triples and word vectors into a directory that training starts from.

    It holds the tokenizer with its knowledge, a model that has learnt nothing yet, the tokenised stories and a report.
    The same inputs a second time are a cache hit. Without options: the stories and triples of the package.

    Example: `storyend prepare --stories rocstories.csv --conceptnet conceptnet-assertions-5.7.0.csv.gz --glove
    glove.6B.200d.txt --num-train 90000 --output prepared`
    """
    from hf_storyend.preparation import PreparationOptions
    from hf_storyend.preparation import prepare as run

    options = PreparationOptions(
        stories=stories,
        conceptnet=tuple(map(str, conceptnet or ())),
        glove=str(glove) if glove else None,
        vocab_size=vocab_size,
        lower_case=lower_case,
        split_contractions=split_contractions,
        knowledge=None if knowledge is Encoder.none else knowledge.value,
        max_triples=max_triples,
        policy=cast("Policy", policy.value),
        relations=tuple(relation) if relation else None,
        min_weight=min_weight,
        inverse=inverse,
        symmetric=symmetric,
        multi_word=multi_word,
        hidden_size=hidden_size,
        num_layers=num_layers,
        embedding_size=embedding_size,
        num_train=num_train,
        seed=seed,
    )
    report = run(options, output, overwrite=overwrite, num_proc=num_proc)
    if as_json:
        typer.echo(json.dumps(report, indent=1, ensure_ascii=False))
        return
    console = Console()
    console.print(Markdown((output / "report.md").read_text(encoding="utf-8")))
    state = "was there already, made from the same inputs" if report["cached"] else "is ready"
    console.print(f"\n[bold]{output}[/] {state}.")
