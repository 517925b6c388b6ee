"""Options of `storyend explain`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from ..options import check_at_least, option

Format = Literal["json", "md", "html", "svg", "png"]
FORMATS: tuple[Format, ...] = get_args(Format)


@dataclass(frozen=True)
class ExplainOptions:
    """
    Which story is explained, with which model, and where the explanation goes.

    With `triple`, `without_triple` or `without_sentence` the story is also explained with that change, and both
    endings are compared.
    """

    story: str | None = option(
        None, "Story, all its sentences in one string; default: an example story.", positional=True
    )
    model: str | None = option(None, "Directory of a model, or its name on the Hub; default: the package's model.")
    output_dir: str | None = option(None, "Directory for the explanation as files: tables, pictures, a page.")
    format: tuple[Format, ...] = option((), "File format to write; repeatable; default: all of them.")
    triple: tuple[str, ...] = option((), "Triple `head,Relation,tail` to add for the comparison; repeatable.")
    without_triple: tuple[str, ...] = option(
        (), "Triple `head,Relation,tail` to remove for the comparison; repeatable."
    )
    without_sentence: int | None = option(
        None, "Number, from 1, of a sentence to remove for the comparison; default: none."
    )
    num_beams: int | None = option(None, "Number of beams; default: the model's generation config.")
    attention_top_k: int = option(3, "Number of words and of triples in a cell of the printed table.")
    json: bool = option(False, "Print JSON.")

    def __post_init__(self) -> None:
        check_at_least(self, 1, "attention_top_k")
        check_at_least(self, 1, "num_beams", "without_sentence", optional=True)
        if self.story is not None and len(self.story.split()) == 1:
            raise ValueError(f"`story` is the single word {self.story!r}. If it is a model, give it as `model`.")
        if self.format and self.output_dir is None:
            raise ValueError("`format` was given without `output_dir`, the directory to write to: give both.")
        if self.format:
            check_formats(self.format)
        parse_triples("triple", self.triple)
        parse_triples("without_triple", self.without_triple)


def check_formats(formats: Sequence[str]) -> None:
    """Refuse formats that an explanation can't be written in."""
    if not formats or not set(formats) <= set(FORMATS):
        raise ValueError(f"`formats` must be some of {', '.join(FORMATS)}; got {list(formats)}.")


def parse_triples(name: str, texts: Sequence[str]) -> list[tuple[str, str, str]]:
    """
    Parse triples that are written as `head,Relation,tail`.

    Args:
        name: Name of the option, for the error.
        texts: One triple each.
    """
    return [_parse_triple(name, text) for text in texts]


def _parse_triple(name: str, text: str) -> tuple[str, str, str]:
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 3 or not all(parts):
        raise ValueError(f"`{name}` must be `head,Relation,tail`, like `oven,UsedFor,bake`; got {text!r}.")
    return parts[0], parts[1], parts[2]
