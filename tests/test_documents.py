"""What the documents say is so: links lead somewhere, commands and their options exist, Python code runs."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path

import pytest
import typer
import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token
from storyend_cli.main import app

import hf_storyend
from hf_storyend import IncrementalEncoderForEndingGeneration, IncrementalEncoderTokenizer

ROOT = Path(__file__).parent.parent
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "hub_cards").glob("*.md")),
]
STORYEND = typer.main.get_command(app)
MAX_LINES_OF_HOW_TO = 40
RUN_BLOCKS = """
import json, sys
names = {}
for number, block in enumerate(json.load(sys.stdin), start=1):
    exec(compile(block, f"block {number}", "exec"), names)
"""

every_document = pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))


def tokens_of(text: str) -> Iterator[Token]:
    for token in MarkdownIt().parse(text):
        yield token
        yield from token.children or ()


def blocks(text: str, language: str) -> list[str]:
    """Fenced code of a language."""
    return [token.content for token in tokens_of(text) if token.type == "fence" and token.info.strip() == language]


def dead_links(text: str, folder: Path) -> list[str]:
    """Relative links that lead to nothing."""
    targets = [str(token.attrs.get("href") or token.attrs.get("src") or "") for token in tokens_of(text)]
    files = [target.partition("#")[0] for target in targets if not re.match(r"[a-z]+:", target)]
    return [file for file in files if file and not (folder / file).exists()]


def command_lines(text: str) -> list[list[str]]:
    """The words of every command in the bash code, without comments; a backslash joins lines."""
    lines = "".join(blocks(text, "bash")).replace("\\\n", " ").splitlines()
    return [words for words in (shlex.split(line, comments=True) for line in lines) if words]


def wrong_storyend_command(words: list[str]) -> str | None:
    """Why `storyend` would refuse these words; nothing is run."""
    command, name, rest = STORYEND, words[0], words[1:]
    while hasattr(command, "commands"):
        if not rest or rest[0] not in command.commands:
            return f"`{name}` has no command `{' '.join(rest[:1])}`"
        command, name, rest = command.commands[rest[0]], f"{name} {rest[0]}", rest[1:]
    try:
        command.make_context(name, rest)
    except Exception as error:
        return error.format_message() if hasattr(error, "format_message") else str(error)
    return None


def wrong_script_call(words: list[str]) -> str | None:
    """Why a command that starts a script of this repository can't work: a file or an option is not there."""
    files = [word for word in words if re.match(r"(examples|benchmarks)/", word)]
    missing = [file for file in files if not (ROOT / file).is_file()]
    if missing:
        return f"{missing[0]} is not there"
    script = next((file for file in files if file.endswith(".py")), None)
    given = {word for word in words[words.index(script) + 1 :] if word.startswith("--")} if script else set()
    unknown = sorted(given - options_of(script)) if script and given else []
    return f"{script} has no option {unknown[0]}" if unknown else None


@cache
def options_of(script: str) -> set[str]:
    """The options that the help of a script lists."""
    printed, arguments = io.StringIO(), sys.argv
    sys.argv = [script, "--help"]
    try:
        with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
            runpy.run_path(str(ROOT / script), run_name="__main__")
    finally:
        sys.argv = arguments
    return set(re.findall(r"--\w+", printed.getvalue()))


def run_in_order(python_blocks: list[str], folder: Path) -> subprocess.CompletedProcess:
    """Run blocks of code in one namespace, in a process and a folder of their own, without network."""
    environment = {**os.environ, "HF_HOME": str(folder / "home"), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", RUN_BLOCKS]
    code = json.dumps(python_blocks)
    return subprocess.run(command, input=code, capture_output=True, text=True, env=environment, cwd=folder)


@every_document
def test_links_lead_to_files(path):
    assert not dead_links(path.read_text(encoding="utf-8"), path.parent)


def test_a_dead_link_is_seen(tmp_path):
    (tmp_path / "there.md").write_text("")
    text = "[a](there.md#part) [b](https://example.org/x) [c](#part) ![d](gone.png)\n\n| [e](gone.md) |"
    assert dead_links(text, tmp_path) == ["gone.png", "gone.md"]


@every_document
def test_commands_and_their_options_exist(path):
    for words in command_lines(path.read_text(encoding="utf-8")):
        wrong = wrong_storyend_command(words) if words[0] == "storyend" else wrong_script_call(words)
        assert wrong is None, f"{shlex.join(words)}: {wrong}"


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("storyend", "has no command"),
        ("storyend paint", "has no command `paint`"),
        ("storyend annotate draw", "`storyend annotate` has no command `draw`"),
        ("storyend generate --colour red", "--colour"),
        ("storyend generate --num-endings many", "--num-endings"),
        ("storyend push my_model", "repo-id"),
        ("accelerate launch examples/paint.py", "examples/paint.py is not there"),
        ("accelerate launch --config_file examples/none.yaml examples/train.py", "examples/none.yaml is not there"),
        ("python examples/evaluate.py --colour red", "examples/evaluate.py has no option --colour"),
        ("accelerate launch examples/train.py --prepared it --colour red", "has no option --colour"),
    ],
)
def test_a_wrong_command_is_seen(line, wrong):
    (words,) = command_lines(f"```bash\n{line}  # as one does\n```")
    found = wrong_storyend_command(words) if words[0] == "storyend" else wrong_script_call(words)
    assert found is not None and wrong in found


def test_a_command_over_two_lines_is_one():
    text = (
        "```bash\nstoryend generate 'A story.' \\\n    --sample   # why not\n# nothing\n```\n```yaml\nno: command\n```"
    )
    assert command_lines(text) == [["storyend", "generate", "A story.", "--sample"]]
    assert wrong_storyend_command(command_lines(text)[0]) is None


@every_document
def test_python_code_compiles(path):
    for block in blocks(path.read_text(encoding="utf-8"), "python"):
        compile(block, path.name, "exec")


def test_code_inside_a_list_is_found_and_what_does_not_compile_is_seen():
    (block,) = blocks("- so:\n\n  ```python\n  if True\n      pass\n  ```\n", "python")
    with pytest.raises(SyntaxError):
        compile(block, "a document", "exec")


def test_the_python_code_of_the_readme_runs(tmp_path):
    source = hf_storyend.default_model()
    IncrementalEncoderForEndingGeneration.from_pretrained(source).save_pretrained(tmp_path / "my_model")
    IncrementalEncoderTokenizer.from_pretrained(source).save_pretrained(tmp_path / "my_model")
    result = run_in_order(blocks((ROOT / "README.md").read_text(encoding="utf-8"), "python"), tmp_path)
    assert result.returncode == 0, result.stderr


def test_code_that_needs_what_no_block_before_it_made_is_seen(tmp_path):
    assert run_in_order(["a = 1", "b = a"], tmp_path).returncode == 0
    failed = run_in_order(["a = 1", "b = c"], tmp_path)
    assert failed.returncode != 0 and "block 2" in failed.stderr and "'c' is not defined" in failed.stderr


@pytest.mark.parametrize("name", ["adding_a_system", "adding_a_knowledge_source", "adding_a_metric"])
def test_how_to_pages_are_short_and_name_files_that_are_there(name):
    text = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MAX_LINES_OF_HOW_TO
    named = [token.content for token in tokens_of(text) if token.type == "code_inline"]
    files = [word for word in named if re.fullmatch(r"[\w/]+/\w+\.\w+", word) and "NAME" not in word]
    assert files and not [file for file in files if not (ROOT / file).exists()]


def test_citation_and_changelog_are_of_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors", "license", "version"} <= citation.keys()
    paper = citation["preferred-citation"]
    assert "1808.10113" in paper["url"] and [person["family-names"] for person in paper["authors"]][0] == "Guan"
    changes = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert changes[0] == citation["version"] == version("hf_storyend").removesuffix(".dev0")
