"""Every block of Python in the documents runs, those of a document in one program, and prints what is shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from documents.markdown_code import DOCUMENTS, ROOT, TUTORIALS, Block, blocks_of
from documents.shells import Printed
from documents.test_documented_commands_run import assert_alike
from hub.hub_server import Blob, Repo
from remote_code import WITHOUT_PACKAGE, run

import hf_storyend
from hf_storyend import IncrementalEncoderForEndingGeneration, IncrementalEncoderTokenizer

# Pieces of files that a how-to page changes; `test_how_to_pages.py` puts them there.
HOW_TO_PIECES = {"docs/adding_a_system.md", "docs/adding_a_metric.md"}
SCORED_STUDY = """
from pathlib import Path
from documents.surroundings import score_sheets
from hf_storyend.annotation import draw_sample, read_systems, write_sample

paths, output = [Path("ie.jsonl"), Path("seq2seq.jsonl")], Path("drawn_here")
write_sample(draw_sample(read_systems(paths), num_stories=200), Path("scored"))
score_sheets(Path())
sheets = sorted(Path("scored/sheets").glob("*.csv"))
"""
SEPARATOR = "\x1e"
# `launch()` of Gradio returns only when the page is closed, unless it is told not to wait.
LAUNCH_WITHOUT_WAITING = (
    "import functools, gradio\n"
    "gradio.Interface.launch = functools.partialmethod(gradio.Interface.launch, prevent_thread_lock=True)"
)


def python_of(name: str) -> list[Block]:
    return blocks_of((ROOT / name).read_text(encoding="utf-8"), "python")


# What a document says that it needs: README's first two blocks make the `model` and `tokenizer` that others refer to.
BEFORE = {
    "docs/explanation.md": [block.code for block in python_of("README.md")[:2]],
    "docs/annotation.md": [SCORED_STUDY],
}
TEMPLATE = "hub_cards/template.md"
NAMES = [str(path.relative_to(ROOT)) for path in DOCUMENTS if path not in {ROOT / TEMPLATE, *TUTORIALS}]
CARDS = [name for name in NAMES if "# How to use" in (ROOT / name).read_text(encoding="utf-8")]
RUN_ALONE = [name for name in NAMES if python_of(name) and name not in {*HOW_TO_PIECES, *CARDS}]


def run_blocks(codes: list[str], shell) -> Printed:
    """Run blocks of code as one program; what one of them prints ends with a separator."""
    program = f"for number, code in enumerate({codes!r}, start=1):\n"
    program += "    exec(compile(code, f'block {number}', 'exec'), globals())\n"
    program += f"    print({SEPARATOR!r}, end='')\n"
    (shell.folder / "blocks.py").write_text(program, encoding="utf-8")
    return shell.run("python blocks.py")


@pytest.mark.parametrize("name", RUN_ALONE)
def test_python_runs_and_prints_what_is_shown(name, warm_shell, loopback_hub):
    shell = warm_shell(name)
    _save_model(shell.folder / "my_model")
    if name == "SECURITY.md":
        _put_on_hub(
            loopback_hub, shell.folder / "my_model", re.search(r'"([0-9a-f]{40})"', python_of(name)[0].code)[1]
        )
    before, blocks = BEFORE.get(name, []), python_of(name)
    done = run_blocks([*before, *(block.code for block in blocks)], shell)
    assert done.code == 0, done.err
    for block, printed in zip(blocks, done.out.split(SEPARATOR)[len(before) :], strict=False):
        if block.shown is not None:
            assert_alike(printed, block.shown)


def _save_model(folder: Path) -> None:
    if not folder.exists():
        source = hf_storyend.default_model()
        IncrementalEncoderForEndingGeneration.from_pretrained(source).save_pretrained(folder)
        IncrementalEncoderTokenizer.from_pretrained(source).save_pretrained(folder)


def _put_on_hub(hub, folder: Path, commit: str) -> None:
    paths = [path for path in folder.iterdir() if path.is_file()]
    files = {path.name: Blob(path.read_bytes(), path.suffix == ".safetensors") for path in paths}
    hub.repos["owner/name"] = Repo(commits={commit: files}, branches={"main": commit})


def test_the_python_of_cards_runs(warm_shell):
    """Cards are made from one template: what they have in common is run once, beside a directory `my_model`."""
    programs = {tuple(block.code for block in python_of(name)) for name in CARDS}
    assert len(CARDS) > 10 and len(programs) < 4
    shell = warm_shell("a card")
    for codes in programs:
        done = run_blocks([LAUNCH_WITHOUT_WAITING, *codes], shell)
        assert done.code == 0 and "." in done.out, done.err


@pytest.mark.slow
def test_the_python_of_cards_runs_where_the_package_does_not_exist(tmp_path):
    source = tmp_path / "my_model"
    _save_model(source)
    codes = [block.code.replace('"my_model"', repr(str(source))) for block in python_of("hub_cards/ie.md")]
    done = run("\n".join([WITHOUT_PACKAGE, LAUNCH_WITHOUT_WAITING, *codes]), home=tmp_path / "home")
    assert done.returncode == 0 and done.stdout.startswith("['"), done.stderr


def test_code_that_needs_what_no_block_before_it_made_is_seen(warm_shell):
    shell = warm_shell("README.md")
    assert run_blocks(["a = 1", "b = a"], shell).code == 0
    failed = run_blocks(["a = 1", "b = c"], shell)
    assert failed.code != 0 and "block 2" in failed.err and "'c' is not defined" in failed.err
