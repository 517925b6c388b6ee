"""`storyend check-code`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape

from .models import find_model
from .options import AsJson, ModelArgument

if TYPE_CHECKING:
    from hf_storyend.hub.verify_code import CodeCheck


def check_code(
    model: ModelArgument = None,
    revision: Annotated[str | None, typer.Option(help="Branch, tag or commit of the repository.")] = None,
    as_json: AsJson = False,
) -> None:
    """
    Say whether the code that travels with a model is, byte for byte, that of the installed package.

    The exit code is 0 if it is and 1 if it is not.

    Example: `storyend check-code me/ie-msa-ca`
    """
    from hf_storyend import hub

    check = hub.check_code(find_model(model), revision)
    if model is None:
        # The package's own model needs no code: whoever has it has the package.
        check.missing = []
    if as_json:
        typer.echo(json.dumps({"is_identical": check.is_identical, **asdict(check)}, indent=1))
    else:
        _show(check, model)
    if not check.is_identical:
        raise typer.Exit(1)


def _show(check: CodeCheck, model: str | None) -> None:
    from importlib.metadata import version

    console, release = Console(highlight=False), f"hf_storyend {version('hf_storyend')}"
    made_with = ", ".join(f"{name} {number}" for name, number in check.made_with.items()) or "not recorded"
    console.print(escape(f"made with: {made_with}"), soft_wrap=True)
    kinds = (("different", check.different), ("missing", check.missing), ("not of the package", check.foreign))
    for word, names in kinds:
        for name in names:
            console.print(escape(f"  {word}: {name}"), soft_wrap=True)
    if model is None and check.is_identical:
        console.print(f"The model that comes with {release} carries no code: the package's own is used.")
        return
    verdict = "identical with" if check.is_identical else "not that of"
    console.print(escape(f"The code of {model or 'the default model'} is {verdict} {release}."), soft_wrap=True)
