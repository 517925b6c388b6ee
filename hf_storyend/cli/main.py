"""The `storyend` command: its commands, and how they fail."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from ..processes import leave_without_destructors
from ..terminal import printable_logs
from .measure import evaluate, report, sample, score
from .parameters import from_options
from .printing import print_error, print_line, print_on_stderr
from .share import card, check_code, export, push
from .train import compare, prepare, read_training_file, systems, train, verify
from .write import demo, explain, generate, rank

# Groups and commands in the order of `storyend --help`.
COMMANDS: dict[str, tuple[Callable[..., None], ...]] = {
    "Write endings": (generate, rank, explain, demo),
    "Data and training": (prepare, train, systems, compare, verify),
    "Measure": (evaluate, score),
    "Share": (card, push, check_code, export),
}
_SETTINGS: dict[str, Any] = {"no_args_is_help": True, "rich_markup_mode": "markdown"}
# Options are spelt with underscores, as Trainer's; hyphens are accepted.
_CONTEXT = {"token_normalize_func": lambda name: name.replace("-", "_")}
# Raised for a wrong command line. The class is click's, or that of typer's own copy of click, by typer's version.
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]

app = typer.Typer(
    help="Story endings by incremental encoding and commonsense knowledge.",
    context_settings=_CONTEXT,
    pretty_exceptions_enable=False,
    **_SETTINGS,
)


def _print_version(is_given: bool) -> None:
    if is_given:
        from .. import __version__

        print_line(f"hf_storyend {__version__}")
        raise typer.Exit


@app.callback()
def storyend(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Story endings by incremental encoding and commonsense knowledge."""


for panel, commands in COMMANDS.items():
    for command in commands:
        if command is not systems:
            command = from_options(command, read_training_file if command is train else None)
        app.command(rich_help_panel=panel)(command)
annotate = typer.Typer(help="Human evaluation: write blinded sheets for annotators, and read them back.", **_SETTINGS)
for command in (sample, report):
    annotate.command()(from_options(command))
app.add_typer(annotate, name="annotate", rich_help_panel="Measure")


def main() -> None:
    """Run a command. Errors that the user can correct are one line on standard error, with exit code 2."""
    if not sys.stderr.isatty():
        # Libraries read these when they are imported; progress bars don't belong in logs.
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
        os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")
    try:
        with _log_on_stderr(), printable_logs():
            code = app(prog_name="storyend", standalone_mode=False) or 0
        leave_without_destructors(code)
        sys.exit(code)
    except _UsageError as error:
        _fail(_usage_message(error))
    except (ValueError, OSError, ImportError) as error:
        _fail(str(error))
    except (KeyboardInterrupt, typer.Abort):
        print_on_stderr("Stopped.")
        sys.exit(130)
    except Exception:
        # An error of ours: its message may hold text of others.
        print_on_stderr(traceback.format_exc())
        sys.exit(1)


@contextmanager
def _log_on_stderr() -> Iterator[None]:
    """Show what the package logs on standard error."""
    logger = logging.getLogger("hf_storyend")
    # Lines as they are: in a file, lines broken at some width can't be searched.
    handler, level = logging.StreamHandler(), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def _fail(message: str) -> None:
    if message:
        print_error(message)
    sys.exit(2)


def _usage_message(error: Exception) -> str:
    """Return what is wrong with the command line and where to look; nothing if the help was shown instead."""
    message, context = error.format_message(), error.ctx  # type: ignore[attr-defined]
    if not message or context is None:
        return message
    return f"{message.rstrip('.')}. `{context.command_path} --help` shows what there is."


if __name__ == "__main__":
    main()
