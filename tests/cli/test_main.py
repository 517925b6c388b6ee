"""The command line as a whole: its help, spelling of options, and how commands fail."""

import json
import logging
from importlib.metadata import version

import pytest
import typer

from hf_storyend.cli.main import COMMANDS, app

GROUP = typer.main.get_command(app)
COMMAND_LINES = [*(name for name in GROUP.commands if name != "annotate"), "annotate sample", "annotate report"]


def command_of(line: str):
    command = GROUP
    for name in line.split():
        command = command.commands[name]
    return command


def test_the_help_groups_commands_by_purpose(storyend):
    printed = storyend("--help").out
    words = ["Write endings", "generate", "explain", "demo", "Data and training", "prepare", "systems", "compare"]
    words += ["Measure", "evaluate", "score", "annotate", "Share", "card", "push", "check-code"]
    places = [printed.index(f"─ {word} ") if word in (*COMMANDS,) else printed.index(f"│ {word} ") for word in words]
    assert places == sorted(places)
    assert "--install-completion" in printed


@pytest.mark.parametrize("line", COMMAND_LINES)
def test_the_help_of_every_command_is_complete(storyend, line):
    printed = storyend(*line.split(), "--help").out
    assert f"Example: storyend {line}" in printed
    for parameter in command_of(line).params:
        assert parameter.help and parameter.help.endswith((".", "`")), parameter.name
        if parameter.param_type_name == "option":
            assert parameter.opts[0] in printed and "-" not in parameter.opts[0].removeprefix("--")


@pytest.mark.parametrize("option", ["--max_stories", "--max-stories"])
def test_options_may_be_spelt_with_hyphens(storyend, option):
    assert "`--max_stories` must be a whole number of at least 1; got 0" in storyend("score", option, "0", code=2).err


def test_values_are_not_respelt(storyend):
    assert "`no-such-system`" in storyend("compare", "--systems", "no-such-system", code=2).err


@pytest.mark.parametrize("command", ["generate --model", "explain --model", "evaluate", "check-code"])
@pytest.mark.parametrize("name", ["my_modle", "../my_model", "some/where/else", "/not/there"])
def test_a_model_that_does_not_exist_is_not_looked_for_on_the_hub(storyend, command, name):
    assert f"Error: `{name}` is no model: there is no such directory" in storyend(*command.split(), name, code=2).err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nothing", "No such command 'nothing'. `storyend --help` shows what there is."),
        ("annotate draw", "No such command 'draw'. `storyend annotate --help` shows what there is."),
        ("card --nothing", "No such option: --nothing. `storyend card --help` shows what there is."),
        ("push", "Missing argument 'model'. `storyend push --help` shows what there is."),
        ("push it", "Give either `--repo_id`, for a model, or `--collection`, for a comparison."),
        ("evaluate --split", "Option '--split' requires an argument."),
        ("evaluate --batch_size many", "Invalid value for '--batch_size'"),
        ("evaluate --batch_size 0", "`--batch_size` must be a whole number of at least 1; got 0."),
        ("prepare --policy big", "'big' is not one of 'weight'"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(storyend, line, message):
    printed = storyend(*line.split(), code=2)
    assert printed.err.startswith("Error: ") and message in printed.err
    assert printed.err.count("\n") == 1 and not printed.out


@pytest.mark.parametrize("line", ["", "annotate"])
def test_no_command_shows_the_help(storyend, line):
    printed = storyend(*line.split(), code=2)
    assert "Usage: storyend" in printed.out and not printed.err


def test_the_version_is_that_of_the_package(storyend):
    assert storyend("--version").out == f"hf_storyend {version('hf_storyend')}\n"


def test_the_shell_completes_commands(storyend, monkeypatch):
    asked = {"_STORYEND_COMPLETE": "complete_bash", "COMP_WORDS": "storyend exp", "COMP_CWORD": "1"}
    for name, value in asked.items():
        monkeypatch.setenv(name, value)
    assert storyend().out.split() == ["explain", "export"]


def test_ctrl_c_is_no_traceback(storyend, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("hf_storyend.systems.count_parameters", interrupt)
    assert "Traceback" not in storyend("systems", code=130).err


def test_the_log_is_shown_on_standard_error(storyend, monkeypatch):
    logger = logging.getLogger("hf_storyend.systems")

    def log(*_):
        logger.info("Counting [parameters].")
        return 1

    monkeypatch.setattr("hf_storyend.systems.count_parameters", log)
    printed = storyend("systems", "--json")
    assert "Counting [parameters]." in printed.err and json.loads(printed.out)
    assert not any(type(handler).__name__ == "RichHandler" for handler in logging.getLogger("hf_storyend").handlers)
