"""The options of `storyend prepare`, in the groups that its help shows."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

_STORIES, _KNOWLEDGE, _MODEL = "Stories and vocabulary", "Knowledge", "Model"


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


Stories = Annotated[
    str,
    typer.Option(
        rich_help_panel=_STORIES,
        help="CSV of ROCStories or the Story Cloze Test, JSON Lines, `.post`/`.response`, plain text, a directory of "
        "such files named after splits, a saved dataset, a dataset on the Hub, or `embedded`.",
    ),
]
NumTrain = Annotated[
    int | None,
    typer.Option(
        min=1, rich_help_panel=_STORIES, help="Training stories, where there are no splits (the paper: 90000)."
    ),
]
VocabSize = Annotated[int, typer.Option(min=5, rich_help_panel=_STORIES, help="Words, special symbols included.")]
LowerCase = Annotated[bool, typer.Option(rich_help_panel=_STORIES, help="A vocabulary in lower case, or as written.")]
SplitContractions = Annotated[
    bool, typer.Option(rich_help_panel=_STORIES, help="`didn't` as `did` and `n't`, or as one word.")
]
NumProc = Annotated[int | None, typer.Option(min=1, rich_help_panel=_STORIES, help="Processes that tokenise.")]

ConceptNet = Annotated[
    list[Path] | None,
    typer.Option(
        rich_help_panel=_KNOWLEDGE,
        help="Triples: the ConceptNet dump (plain or gzip) or a smaller file. Give it again for more.",
    ),
]
MaxTriples = Annotated[int, typer.Option(min=1, rich_help_panel=_KNOWLEDGE, help="Most triples a word.")]
Policy = Annotated[KeptTriples, typer.Option(rich_help_panel=_KNOWLEDGE, help="Which triples stay.")]
Relations = Annotated[
    list[str] | None,
    typer.Option(rich_help_panel=_KNOWLEDGE, help="Keep only this relation. Give it again for more."),
]
MinWeight = Annotated[
    float | None, typer.Option(rich_help_panel=_KNOWLEDGE, help="Leave out triples of a smaller weight.")
]
Inverse = Annotated[bool, typer.Option(rich_help_panel=_KNOWLEDGE, help="Let every triple count from its tail too.")]
Symmetric = Annotated[
    bool, typer.Option(rich_help_panel=_KNOWLEDGE, help="Let triples of symmetric relations count from their tail.")
]
MultiWord = Annotated[bool, typer.Option(rich_help_panel=_KNOWLEDGE, help="Match concepts of several words in text.")]

Knowledge = Annotated[Encoder, typer.Option(rich_help_panel=_MODEL, help="Knowledge encoder of the model.")]
Glove = Annotated[Path | None, typer.Option(rich_help_panel=_MODEL, help="Word vectors as text, plain or gzip.")]
HiddenSize = Annotated[int, typer.Option(min=1, rich_help_panel=_MODEL, help="Size of LSTM states.")]
NumLayers = Annotated[int, typer.Option(min=1, rich_help_panel=_MODEL, help="LSTM layers.")]
EmbeddingSize = Annotated[
    int | None,
    typer.Option(min=1, rich_help_panel=_MODEL, help="Size of word vectors; by default that of `--glove`, or 200."),
]
