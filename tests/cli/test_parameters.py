"""Fields of an options dataclass become parameters of a command, with their types, defaults and help."""

from dataclasses import dataclass, field
from typing import Literal

import pytest
import typer
from typer.testing import CliRunner

from hf_storyend.cli.parameters import from_options
from hf_storyend.options import REQUIRED, option


@dataclass(frozen=True)
class Options:
    """Options with a field of every kind."""

    files: tuple[str, ...] = option((), "Files.", positional=True, metavar="FILE")
    size: int = option(3, "Size.")
    rate: float | None = option(None, "Rate.")
    names: tuple[str, ...] | None = option(None, "Names.", flag="name")
    kind: Literal["one-way", "none"] | None = option("one-way", "Kind.", group="Kinds")
    lower: bool = option(True, "Lower.")
    quiet: bool = option(False, "Quiet.")
    python_only: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Needy:
    """Options without a default."""

    target: str = option(REQUIRED, "Target.")


def run(options_class, *arguments):
    """The options that a command gets, and its result."""
    got = []

    def command(options: options_class, extra: int = 0) -> None:
        got.append((options, extra))

    command.__annotations__["options"] = options_class
    app = typer.Typer(context_settings={"token_normalize_func": lambda name: name.replace("-", "_")})
    app.command()(from_options(command))
    result = CliRunner().invoke(app, arguments)
    return (got[0] if got else None), result


def test_defaults_are_those_of_the_dataclass():
    assert run(Options)[0] == (Options(), 0)


def test_every_kind_of_field():
    line = "a b --size 5 --rate 0.5 --name x --name y --kind none --no_lower --quiet --extra 7"
    expected = Options(("a", "b"), 5, 0.5, ("x", "y"), "none", False, True)
    assert run(Options, *line.split())[0] == (expected, 7)
    (options, _), _ = run(Options, "--kind", "one-way")
    assert type(options.kind) is str


def test_the_help_has_defaults_and_groups():
    printed = run(Options, "--help")[1].output
    assert "Kinds" in printed and "--no_lower" in printed and "FILE" in printed and "python_only" not in printed


@pytest.mark.parametrize(
    ("line", "message"), [("--size many", "--size"), ("--kind two-way", "--kind"), ("--colour red", "--colour")]
)
def test_wrong_values_are_refused(line, message):
    got, result = run(Options, *line.split())
    assert got is None and result.exit_code == 2 and message in result.output


def test_a_required_option_is_required():
    assert "--target" in run(Needy)[1].output
    assert run(Needy, "--target", "here")[0][0] == Needy("here")
