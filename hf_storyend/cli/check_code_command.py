"""`storyend check-code`."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape


def check_code(
    model: Annotated[str, typer.Argument(help="Directory of a model, or its name on the Hub.")],
    revision: Annotated[str | None, typer.Option(help="Branch, tag or commit of the repository.")] = None,
) -> None:
    """
    Say whether the code that travels with a model is, byte for byte, that of the installed package.

    The exit code is 0 if it is and 1 if it is not.

    Example: `storyend check-code me/ie-msa-ca`
    """
    from importlib.metadata import version

    from hf_storyend import hub

    check = hub.check_code(model, revision)
    console = Console(highlight=False)
    made_with = ", ".join(f"{name} {number}" for name, number in check.made_with.items()) or "not recorded"
    console.print(escape(f"made with: {made_with}"), soft_wrap=True)
    kinds = (("different", check.different), ("missing", check.missing), ("not of the package", check.foreign))
    for word, names in kinds:
        for name in names:
            console.print(escape(f"  {word}: {name}"), soft_wrap=True)
    verdict = "identical with" if check.is_identical else "not that of"
    console.print(escape(f"The code of {model} is {verdict} hf_storyend {version('hf_storyend')}."), soft_wrap=True)
    if not check.is_identical:
        raise typer.Exit(1)
