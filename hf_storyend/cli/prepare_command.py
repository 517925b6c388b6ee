"""`storyend prepare`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.console import Console

from .options import AsJson
from .pages import print_page
from .prepare_options import (
    ConceptNet,
    EmbeddingSize,
    Encoder,
    Glove,
    HiddenSize,
    Inverse,
    KeptTriples,
    Knowledge,
    LowerCase,
    MaxTriples,
    MinWeight,
    MultiWord,
    NumLayers,
    NumProc,
    NumTrain,
    Policy,
    Relations,
    SplitContractions,
    Stories,
    Symmetric,
    VocabSize,
)

if TYPE_CHECKING:
    from hf_storyend.knowledge import Policy as PolicyName


def prepare(
    stories: Stories = "embedded",
    conceptnet: ConceptNet = None,
    output: Annotated[Path, typer.Option(help="Directory to write.")] = Path("prepared"),
    glove: Glove = None,
    vocab_size: VocabSize = 10_000,
    lower_case: LowerCase = True,
    split_contractions: SplitContractions = True,
    knowledge: Knowledge = Encoder.contextual_attention,
    max_triples: MaxTriples = 10,
    policy: Policy = KeptTriples.weight_and_frequency,
    relation: Relations = None,
    min_weight: MinWeight = None,
    inverse: Inverse = False,
    symmetric: Symmetric = False,
    multi_word: MultiWord = False,
    hidden_size: HiddenSize = 512,
    num_layers: NumLayers = 2,
    embedding_size: EmbeddingSize = None,
    num_train: NumTrain = None,
    seed: Annotated[int, typer.Option(help="Of the split and all that is drawn.")] = 0,
    num_proc: NumProc = None,
    overwrite: Annotated[bool, typer.Option(help="Replace what stands in the output directory.")] = False,
    as_json: AsJson = False,
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
        policy=cast("PolicyName", policy.value),
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
    print_page((output / "report.md").read_text(encoding="utf-8"))
    state = "was there already, made from the same inputs" if report["cached"] else "is ready"
    Console().print(f"\n[bold]{output}[/] {state}.")
