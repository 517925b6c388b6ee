"""Tutorials are followed from top to bottom, commands and Python in turn, with small models."""

from __future__ import annotations

import re

import pytest
from documents.markdown_code import ROOT, TUTORIALS, Block, blocks_of, commands_in, fenced_blocks
from documents.python_session import PythonSession, python_session
from documents.shells import BashShell, Printed
from documents.test_documented_commands_run import assert_alike, run_documented

# Options that are added: the same programs, for seconds instead of hours.
SMALLER = {
    "storyend train": "--max_steps 2 --per_device_train_batch_size 8 --max_eval_samples 4 --hidden_size 16 "
    "--num_layers 1",
    "storyend evaluate": "--max_stories 6 --bootstrap_samples 20",
    "storyend prepare": "--hidden_size 16 --num_layers 1",
}
# The file that a block of YAML stands for, with smaller sizes.
YAML_FILE = "paper.yaml"
LESS = {"hidden_size: 512": "hidden_size: 16", "num_layers: 2": "num_layers: 1"}
# A trained model is the start of this one.
NEEDS_MODEL = "publish_a_model"


def name_of(path) -> str:
    return path.stem


def run_command(command: str, shell: BashShell) -> Printed:
    added = [options for name, options in SMALLER.items() if command.startswith(name)]
    command = " ".join([command, *added])
    # Of the stories that a tutorial writes, 90 % are to learn from, as it says.
    return shell.run(command) if "--stories stories.jsonl" in command else run_documented(command, shell)


def run_block(block: Block, shell: BashShell, session: PythonSession) -> str:
    """What a block prints; it must succeed."""
    if block.language == "python":
        results = [session.run(block.code)]
    else:
        results = [run_command(command, shell) for command in commands_in(block.code)]
    for result in results:
        assert result.code == 0, f"{block.code}\n{result.out}\n{result.err}"
    return "".join(result.out for result in results)


@pytest.mark.slow
@pytest.mark.parametrize("path", TUTORIALS, ids=name_of)
def test_it_can_be_followed(path, warm_shell):
    shell = warm_shell("a model" if path.stem == NEEDS_MODEL else "README.md")
    with python_session(shell) as session:
        for block in fenced_blocks(path.read_text(encoding="utf-8")):
            if block.language == "yaml":
                text = block.code
                for size, smaller in LESS.items():
                    text = text.replace(size, smaller)
                (shell.folder / YAML_FILE).write_text(text, encoding="utf-8")
            if block.language not in ("bash", "python"):
                continue
            printed = run_block(block, shell, session)
            if block.shown is not None:
                assert_alike(printed, block.shown)


@pytest.mark.slow
def test_a_block_that_fails_is_seen(warm_shell):
    with python_session(warm_shell("README.md")) as session:
        assert session.run("a = 1\nprint(a)").out == "1\n"
        assert session.run("print(a + 1)").out == "2\n"
        failed = session.run("print(b)")
        assert failed.code == 1 and "'b' is not defined" in failed.err
        assert session.run("print(a)").code == 0


def test_there_is_one_for_each_thing_that_is_ones_own():
    assert {path.stem for path in TUTORIALS} == {
        *("own_data", "own_knowledge", "own_system", "reproduce_the_paper", "publish_a_model")
    }
    for path in TUTORIALS:
        assert blocks_of(path.read_text(encoding="utf-8"), "bash"), path
        assert re.search(rf"tutorials/{path.name}\b", (ROOT / "README.md").read_text(encoding="utf-8"))
