"""`storyend explain`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from .models import find_model
from .options import AsJson, ModelOption, NumBeams
from .pages import print_page
from .triples import parse_triples

if TYPE_CHECKING:
    from hf_storyend.explanation.options import Format


class FileFormat(StrEnum):
    """What an explanation can be written as."""

    json = "json"
    md = "md"
    html = "html"
    svg = "svg"
    png = "png"


def explain(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MODEL] [STORY]",
            help="The story, all its sentences in one string; before it, if you like, the model. By default a story "
            "of our own.",
        ),
    ] = None,
    model: ModelOption = None,
    output: Annotated[
        Path | None, typer.Option(help="Directory for the explanation as files, pictures and a page among them.")
    ] = None,
    file_format: Annotated[
        list[FileFormat] | None, typer.Option("--format", help="Write only this. Give it again for more.")
    ] = None,
    triple: Annotated[
        list[str] | None,
        typer.Option(help="`head,Relation,tail` to add, and compare. Give it again for more."),
    ] = None,
    without_triple: Annotated[
        list[str] | None,
        typer.Option(help="`head,Relation,tail` to take away, and compare. Give it again for more."),
    ] = None,
    without_sentence: Annotated[
        int | None, typer.Option(help="Number, from 1, of a sentence to take away, and compare.")
    ] = None,
    num_beams: NumBeams = None,
    max_reads: Annotated[int, typer.Option(min=1, help="So many words and triples in the printed table.")] = 3,
    as_json: AsJson = False,
) -> None:
    """
    Write the ending of a story and show why: what each word read, and the clues behind it.

    With a change (a triple more, a triple or a sentence less) also what becomes of the ending.

    Example: `storyend explain "Mei put a cake in the oven. She fell asleep." --model my_model --output why`
    """
    model_name, story = _model_and_story(words or [], model)
    name = find_model(model_name)
    formats = _checked_formats(file_format, output)
    from transformers import AutoModel, AutoTokenizer
    from transformers.utils import logging

    from hf_storyend.explanation import counterfactual, save_counterfactual, save_explanation
    from hf_storyend.explanation import explain as explain_story
    from hf_storyend.pretrained import EXAMPLE_STORIES

    changes: dict[str, Any] = {
        "without_sentence": without_sentence,
        "without_triples": parse_triples("--without-triple", without_triple),
        "with_triples": parse_triples("--triple", triple),
    }
    generation: dict[str, Any] = {} if num_beams is None else {"num_beams": num_beams}
    logging.disable_progress_bar()
    text = EXAMPLE_STORIES[0] if story is None else story
    network, tokenizer = AutoModel.from_pretrained(name), AutoTokenizer.from_pretrained(name)
    if all(change is None for change in changes.values()):
        explanation = explain_story(network, tokenizer, text, **generation)
        _show(explanation.to_json() if as_json else explanation.to_markdown(max_reads), as_json)
        if output is not None:
            save_explanation(explanation, output, formats)
        return
    compared = counterfactual(network, tokenizer, text, **changes, **generation)
    pages = (compared.original.to_markdown(max_reads), compared.changed.to_markdown(max_reads), compared.to_markdown())
    _show(compared.to_json() if as_json else "\n".join(pages), as_json)
    if output is not None:
        save_counterfactual(compared, output, formats)


def _checked_formats(chosen: list[FileFormat] | None, output: Path | None) -> tuple[Format, ...]:
    """What to write, known to be possible before any work is done; all that there is unless some was chosen."""
    if chosen and output is None:
        raise ValueError("`--format` says what to write: give `--output`, the directory to write it to, too.")
    from hf_storyend.explanation.files import check_writable as check_formats
    from hf_storyend.explanation.options import FORMATS

    formats = tuple(cast("Format", name.value) for name in chosen) if chosen else FORMATS
    if output is not None:
        check_formats(formats)
    return formats


def _model_and_story(words: list[str], model: str | None) -> tuple[str | None, str | None]:
    """What the arguments mean: a story, or a model and a story; None is what was not given."""
    if len(words) > 2:
        raise ValueError(f"{len(words)} arguments were given: put quotation marks around the story.")
    if len(words) == 2 and model is not None:
        raise ValueError(f"Two models were given, {words[0]!r} and {model!r}: give one, and a story.")
    if len(words) == 2:
        return words[0], words[1]
    if words and len(words[0].split()) == 1:
        raise ValueError(f"{words[0]!r} is no story. If it is a model, give it as `--model`, or a story behind it.")
    return model, words[0] if words else None


def _show(text: str, is_plain: bool) -> None:
    if is_plain:
        typer.echo(text)
        return
    print_page(text)
