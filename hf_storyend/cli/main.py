"""The commands of `storyend`, and how they fail."""

from __future__ import annotations

import sys
from collections.abc import Callable

import typer
from rich.console import Console

from .annotate_command import annotate
from .card_command import card
from .check_code_command import check_code
from .compare_command import compare
from .demo_command import demo
from .evaluate_command import evaluate
from .explain_command import explain
from .generate_command import generate
from .prepare_command import prepare
from .push_command import push
from .score_command import score
from .systems_command import systems

app = typer.Typer(
    help="Story endings by incremental encoding and commonsense knowledge.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    add_completion=True,
)


@app.callback()
def storyend() -> None:
    """Story endings by incremental encoding and commonsense knowledge."""


# The help lists groups and commands in this order.
COMMANDS: dict[str, tuple[Callable[..., None], ...]] = {
    "Write endings": (generate, explain, demo),
    "Data and training": (prepare, systems, compare),
    "Measure": (evaluate, score),
    "Share": (card, push, check_code),
}
for panel, commands in COMMANDS.items():
    for command in commands:
        app.command(rich_help_panel=panel)(command)
app.add_typer(annotate, name="annotate", rich_help_panel="Measure")


def main() -> None:
    """Run a command; what the user can mend is one line on standard error and exit code 2."""
    try:
        app()
    except (ValueError, OSError, ImportError) as error:
        Console(stderr=True, highlight=False).print(f"[bold red]Error:[/] {_escaped(error)}", soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        Console(stderr=True).print("Stopped.")
        sys.exit(130)


def _escaped(error: Exception) -> str:
    return str(error).replace("[", r"\[")


if __name__ == "__main__":
    main()
