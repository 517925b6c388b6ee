"""The commands of `storyend`, and how they fail."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import Annotated

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
# What a wrong command line raises. The class itself lies in click, or in typer's own copy of it, by typer's version.
UsageError: type[Exception] = typer.BadParameter.__bases__[0]


def _show_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"hf_storyend {version('hf_storyend')}")
        raise typer.Exit


@app.callback()
def storyend(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
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
    if not sys.stderr.isatty():
        # Libraries read these when they are imported; in a log, bars are noise.
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
        os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")
    try:
        sys.exit(app(prog_name="storyend", standalone_mode=False) or 0)
    except UsageError as error:
        _complain(_with_help_at_hand(error))
    except (ValueError, OSError, ImportError) as error:
        _complain(str(error))
    except (KeyboardInterrupt, typer.Abort):
        Console(stderr=True).print("Stopped.")
        sys.exit(130)


def _complain(message: str) -> None:
    if message:
        escaped = message.replace("[", r"\[")
        Console(stderr=True, highlight=False).print(f"[bold red]Error:[/] {escaped}", soft_wrap=True)
    sys.exit(2)


def _with_help_at_hand(error: Exception) -> str:
    """What is wrong with the command line, and where to look; nothing if help was printed instead."""
    message, context = error.format_message(), error.ctx  # type: ignore[attr-defined]
    if not message or context is None:
        return message
    return f"{message.rstrip('.')}. `{context.command_path} --help` shows what there is."


if __name__ == "__main__":
    main()
