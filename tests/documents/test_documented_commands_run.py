"""
Every command in the documents and in the help of commands runs, in order, and prints what the document shows.

By default commands run in a process that has imported everything; the slow tests type them into bash.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator

import pytest
import typer
from annotation.sheet_rows import rewrite
from demo.demo_server import free_port, running
from documents.markdown_code import DOCUMENTS, ROOT, TUTORIALS, Block, blocks_of, commands_in
from documents.shells import BashShell, Printed
from documents.surroundings import NUM_TRAIN, score_sheets

from hf_storyend.cli.main import app

# Options that are added: the same programs, for seconds instead of hours.
SMALLER = {
    "storyend prepare": f"--num_train {NUM_TRAIN} --hidden_size 16 --num_layers 1",
    "storyend compare": "--max_steps 2",
    "examples/train.py": "--max_steps 2 --per_device_train_batch_size 8 --max_eval_samples 4 --max_train_samples 40",
    "python -m pytest": "--collect-only -q",
}
MULTI_GPU = "examples/accelerate_configs/multi_gpu.yaml"
# What is not run here, and why, by how it starts. Whether files, options and targets exist is tested all the same.
NOT_RUN = {
    "make ": "installs from the network, then starts `storyend generate`, tests or benchmarks",
    ". .venv/bin/activate": "the environment that make has made",
    'pip install "hf_storyend[evaluation]"': "installs from the network",
    f"accelerate launch --config_file {MULTI_GPU} examples/train.py": "needs several GPUs",
    "sbatch examples/slurm/train.sbatch": "needs Slurm",
    "storyend export": "needs the extra `onnx`; tests/export runs it",
}
# Only the slow tests can run these: other launchers, pytest itself, and a server that waits for Ctrl+C.
ONLY_TYPED = ("torchrun ", "python -m pytest", "storyend demo")
HELP = "the help of storyend"
SLOW_DOCUMENTS = {HELP, "docs/explanation.md", "docs/training.md"}


def documented() -> dict[str, list[Block]]:
    """
    The bash code of every document that has any, and the examples in the help as one more. `test_tutorials.py` follows
    the tutorials, whose commands need the Python between them.
    """
    paths = [path for path in DOCUMENTS if path not in TUTORIALS]
    found = {str(path.relative_to(ROOT)): blocks_of(path.read_text(encoding="utf-8"), "bash") for path in paths}
    return {**{name: blocks for name, blocks in found.items() if blocks}, HELP: help_examples()}


def help_examples() -> list[Block]:
    return [Block("bash", example) for example in _examples(typer.main.get_command(app))]


def _examples(command) -> Iterator[str]:
    if hasattr(command, "commands"):
        for inner in command.commands.values():
            yield from _examples(inner)
        return
    (example,) = re.findall(r"Example: `(.*?)`", command.help, flags=re.DOTALL)
    yield " ".join(example.split())


def smaller(command: str) -> str:
    """The command as it is documented, with what makes it small behind it."""
    return " ".join([command, *(options for name, options in SMALLER.items() if name in command)])


def run_documented(command: str, shell: BashShell) -> Printed:
    """Run a command, after what a person would have done before it."""
    if command.startswith("storyend check-code me/"):
        pushed = shell.run("storyend push my_model --repo_id me/ie-msa-ca")
        assert pushed.code == 0, pushed.err
    if command.startswith("storyend annotate report"):
        score_sheets(shell.folder)
    if command.startswith("storyend demo") and "--space" not in command:
        return _visited(command, shell)
    return shell.run(smaller(command))


def _visited(command: str, shell: BashShell) -> Printed:
    port = free_port()
    words = [*shell.words(command), "--no_open", "--port", str(port)]
    with running(words, port, env=shell.environment, cwd=shell.folder) as server:
        assert "gradio" in server.get()
    return Printed(0, "", "")


def run_document(name: str, shell: BashShell, left_out: tuple[str, ...] = ()) -> None:
    """Run all blocks of a document in order; each must succeed and print what is shown."""
    for block in documented()[name]:
        printed = ""
        for command in commands_in(block.code):
            if command.startswith((*NOT_RUN, *left_out)):
                continue
            done = run_documented(command, shell)
            assert done.code == 0, f"{name}: {command}\n{done.out}\n{done.err}"
            assert "Traceback" not in done.err
            printed += done.out
        if block.shown is not None:
            assert_alike(printed, block.shown)


def assert_alike(printed: str, shown: str) -> None:
    """The same text; numbers may differ by rounding, as processors do."""
    number = re.compile(r"-?\d+\.\d+")
    assert number.sub("0.0", printed) == number.sub("0.0", shown), printed
    for one, other in zip(number.findall(printed), number.findall(shown), strict=True):
        assert float(one) == pytest.approx(float(other), abs=0.2), printed


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW_DOCUMENTS else []) for name in documented()]
)
def test_commands_run(name, warm_shell):
    shell = warm_shell(name)
    _start_anew(name, shell)
    run_document(name, shell, left_out=ONLY_TYPED)


@pytest.mark.slow
@pytest.mark.parametrize("name", documented())
def test_commands_run_as_they_are_typed(name, bash_shell):
    shell = bash_shell(name)
    _start_anew(name, shell)
    run_document(name, shell)


def _start_anew(name: str, shell: BashShell) -> None:
    """What a document makes itself is not there yet; `options.yaml` is the one that docs/training.md shows."""
    if name in ("docs/training.md", HELP):
        (block,) = blocks_of((ROOT / "docs" / "training.md").read_text(encoding="utf-8"), "yaml")
        (shell.folder / "options.yaml").write_text(block.code, encoding="utf-8")
    if name == "docs/training.md":
        shutil.rmtree(shell.folder / "my_model")
    if name == HELP:
        shutil.rmtree(shell.folder / "prepared")


def test_what_is_wrong_with_sheets_is_told_as_shown(warm_shell):
    """docs/annotation.md has the answer to a wrong score, ten blank ones and a sheet that did not come back."""
    name = "docs/annotation.md"
    shell = warm_shell(name)
    sample, *_, report = (command for block in documented()[name] for command in commands_in(block.code))
    assert shell.run(sample).code == 0
    score_sheets(shell.folder)
    sheets = shell.folder / "human" / "sheets"
    # Row 1 is the header.
    rewrite(sheets / "sheet_1.csv", lambda rows: rows[17 - 2].update(grammar="3"))
    rewrite(sheets / "sheet_2.csv", lambda rows: [row.update(logicality="") for row in rows[31 - 2 : 40 - 1]] and None)
    (sheets / "sheet_3.csv").unlink()
    done = shell.run(report)
    *_, shown = (block.code for block in blocks_of((ROOT / name).read_text(encoding="utf-8"), "text"))
    assert (done.code, done.err) == (2, shown)


def test_little_is_not_run():
    commands = [command for blocks in documented().values() for block in blocks for command in commands_in(block.code)]
    for start in (*NOT_RUN, *ONLY_TYPED):
        assert any(command.startswith(start) for command in commands), f"no document has {start!r} any more"
    not_run = [command for command in commands if command.startswith(tuple(NOT_RUN))]
    assert len([command for command in not_run if not command.startswith("make ")]) == len(NOT_RUN) - 1
    assert len(commands) > 2 * len(not_run)


def test_output_that_is_not_as_shown_is_seen():
    assert_alike("She won. (-0.92)\n", "She won. (-0.93)\n")
    for printed in ("She lost. (-0.92)\n", "She won. (-1.92)\n", "She won.\n"):
        with pytest.raises(AssertionError):
            assert_alike(printed, "She won. (-0.92)\n")


def test_a_command_that_fails_is_seen(warm_shell):
    done = warm_shell("README.md").run("storyend generate --num_return_sequences 0")
    assert done.code == 2 and "Error" in done.err
