"""Options of `storyend explain`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from ..options import (
    DECODING_HELP,
    MAX_SENTENCE_LENGTH,
    MAX_SENTENCES,
    SAMPLE_HELP,
    SEED_HELP,
    TEMPERATURE_HELP,
    TOP_K_HELP,
    TOP_P_HELP,
    DecodingPreset,
    check_at_least,
    check_finite_numbers,
    check_sampling,
    decoding_arguments,
    option,
    samples,
)

Format = Literal["json", "md", "html", "svg", "png"]
FORMATS: tuple[Format, ...] = get_args(Format)


@dataclass(frozen=True)
class ExplainOptions:
    """
    Options of `storyend explain`: which story, with which model, and where the explanation goes.

    With `triples`, `without_triples` or `without_sentence` the story is also explained with that change, and both
    endings are compared.
    """

    story: str | None = option(
        None, "Story, all its sentences in one string; default: an example story.", positional=True
    )
    model: str | None = option(None, "Model directory or Hub name; default: the model that comes with the package.")
    output_dir: str | None = option(
        None, "Directory for the explanation as files: tables, pictures, a page; default: nothing is saved."
    )
    formats: tuple[Format, ...] = option((), "Write only this file format; repeatable; default: all.", flag="format")
    triples: tuple[str, ...] = option(
        (), "Add the triple `head,Relation,tail` and compare; repeatable.", flag="triple", metavar="TRIPLE"
    )
    without_triples: tuple[str, ...] = option(
        (), "Remove the triple `head,Relation,tail` and compare; repeatable.", flag="without_triple", metavar="TRIPLE"
    )
    without_sentence: int | None = option(None, "Remove the sentence with this number, from 1, and compare.")
    decoding: DecodingPreset | None = option(None, DECODING_HELP)
    num_beams: int | None = option(None, "Beams; default: those of the preset.")
    do_sample: bool = option(False, SAMPLE_HELP)
    temperature: float | None = option(None, TEMPERATURE_HELP)
    top_p: float | None = option(None, TOP_P_HELP)
    top_k: int | None = option(None, TOP_K_HELP)
    seed: int = option(0, SEED_HELP)
    attention_top_k: int = option(3, "Show the words and triples with the k highest shares and weights.")
    max_sentences: int = option(MAX_SENTENCES, "Refuse stories with more sentences.")
    max_sentence_length: int = option(MAX_SENTENCE_LENGTH, "Refuse sentences with more words.")
    json: bool = option(False, "Print JSON instead of tables.")

    def __post_init__(self) -> None:
        check_at_least(self, 1, "attention_top_k", "max_sentences", "max_sentence_length")
        check_at_least(self, 1, "num_beams", optional=True)
        check_at_least(self, 0, "seed")
        check_finite_numbers(self)
        check_sampling(self)
        if self.story is not None and len(self.story.split()) == 1:
            raise ValueError(f"`story` is a single word, {self.story!r}. If that is a model, give it as `model`.")
        if self.formats and self.output_dir is None:
            raise ValueError("`formats` were given, but no `output_dir`, the directory to write to: give both.")
        check_formats(self.formats or FORMATS)
        self.changes()

    def changes(self) -> dict[str, Any]:
        """Return the changes as arguments of `counterfactual`; empty if there are none."""
        changes = {
            "without_sentence": self.without_sentence,
            "without_triples": parse_triples("without_triples", self.without_triples),
            "with_triples": parse_triples("triples", self.triples),
        }
        return {name: change for name, change in changes.items() if change not in (None, [])}

    def generate_arguments(self) -> dict[str, Any]:
        """Return how the ending is decoded, as arguments of `explain`."""
        return decoding_arguments(self) | ({"seed": self.seed} if samples(self) else {})


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
