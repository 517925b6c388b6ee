"""What the documents name is there: links lead somewhere, commands, options, make targets and extras exist."""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import shlex
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import metadata, version
from pathlib import Path

import pytest
import typer
import yaml
from documents.markdown_code import DOCUMENTS, ROOT, blocks_of, commands_in, fenced_blocks, inline_code, tokens_of

from hf_storyend.cli.main import app

STORYEND = typer.main.get_command(app)
SCRIPT = re.compile(r"(examples|benchmarks)/[\w/]+\.(py|yaml|sbatch)")
LAUNCHERS = ("python", "accelerate", "torchrun", "sbatch")
# Options of other people's programs that the documents name.
OF_OTHERS = {
    "--config_file",
    "--nproc_per_node",
    "--repo-type",
    "--collect-only",
    "--cpu",
    "--num_processes",
    "--num_machines",
}
LANGUAGES = {"bash", "python", "text", "yaml", "bibtex", "mermaid", ""}

every_document = pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))


def dead_links(text: str, folder: Path) -> list[str]:
    """Relative links that lead to no file, or to a heading that the file does not have."""
    targets = [str(token.attrs.get("href") or token.attrs.get("src") or "") for token in tokens_of(text)]
    own = [target.partition("#") for target in targets if target and not re.match(r"[a-z]+:", target)]
    return [
        file + sharp + anchor
        for file, sharp, anchor in own
        if not _leads_somewhere((folder / file) if file else None, anchor, text)
    ]


def _leads_somewhere(path: Path | None, anchor: str, text: str) -> bool:
    if path is not None and not path.exists():
        return False
    return not anchor or anchor in anchors_of(text if path is None else path.read_text(encoding="utf-8"))


def anchors_of(text: str) -> set[str]:
    """What GitHub calls the headings: lower case, hyphens for spaces, no marks."""
    tokens = list(tokens_of(text))
    titles = [tokens[place + 1].content for place, token in enumerate(tokens) if token.type == "heading_open"]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def wrong_command(command: str) -> str | None:
    """Why a command can't work; nothing is run. Three dots stand for anything."""
    words = [word for word in shlex.split(command) if word != "..."]
    if words[0] == "storyend":
        return wrong_storyend_command(words)
    if words[0] == "make":
        return None if words[1:] and set(_names_of_targets(words)) <= make_targets() else f"make has no {words[1:]}"
    if words[0] == "pip":
        unknown = set(extras_in(command)) - set(metadata("hf_storyend").get_all("Provides-Extra"))
        return f"there is no extra {sorted(unknown)}" if unknown else None
    return wrong_script_call(words)


def _names_of_targets(words: list[str]) -> list[str]:
    return [word for word in words[1:] if "=" not in word]


def extras_in(command: str) -> list[str]:
    return [name for names in re.findall(r"\[([\w,]+)\]", command) for name in names.split(",")]


@cache
def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))


def wrong_storyend_command(words: list[str]) -> str | None:
    command, name, rest = STORYEND, words[0], words[1:]
    while hasattr(command, "commands"):
        if (rest and rest[0] in _options_of_command(command)) or (not rest and command is not STORYEND):
            return None
        if not rest or rest[0] not in command.commands:
            return f"`{name}` has no command `{' '.join(rest[:1])}`"
        command, name, rest = command.commands[rest[0]], f"{name} {rest[0]}", rest[1:]
    unknown = [word for word in rest if word.startswith("--") and word not in _options_of_command(command)]
    return f"`{name}` has no option {unknown[0]}" if unknown else None


def storyend_usage_error(words: list[str]) -> str | None:
    """What the command says to these arguments, values and missing ones included."""
    command, name, rest = STORYEND, words[0], words[1:]
    while hasattr(command, "commands"):
        command, name, rest = command.commands[rest[0]], f"{name} {rest[0]}", rest[1:]
    try:
        command.make_context(name, rest)
    except Exception as error:
        return error.format_message() if hasattr(error, "format_message") else str(error)
    return None


def _options_of_command(command) -> set[str]:
    return {"--help", *(name for option in command.params for name in (*option.opts, *option.secondary_opts))}


def wrong_script_call(words: list[str]) -> str | None:
    """A file or an option of a script of this repository that is not there."""
    files = [word for word in words if SCRIPT.fullmatch(word)]
    missing = [file for file in files if not (ROOT / file).is_file()]
    if missing:
        return f"{missing[0]} is not there"
    script = next((file for file in files if not file.endswith(".yaml")), None)
    given = {word for word in words[words.index(script) + 1 :] if word.startswith("--")} if script else set()
    # A Slurm script passes its options on.
    runs = "examples/train.py" if script and script.endswith(".sbatch") else script
    unknown = sorted(given - options_of_script(runs)) if runs and given else []
    return f"{script} has no option {unknown[0]}" if unknown else None


@cache
def options_of_script(script: str) -> set[str]:
    """The options that the help of a script lists."""
    printed, arguments = io.StringIO(), sys.argv
    sys.argv = [script, "--help"]
    # As Python does for a script.
    sys.path.insert(0, str((ROOT / script).parent))
    try:
        with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
            runpy.run_path(str(ROOT / script), run_name="__main__")
    finally:
        sys.argv = arguments
        sys.path.pop(0)
    return set(re.findall(r"--[\w-]+", printed.getvalue()))


def all_options() -> set[str]:
    """Every option of every command, and of the scripts that documents mention options of."""
    scripts = ("examples/train.py", "examples/default_model.py")
    return {*_options_below(STORYEND), *OF_OTHERS, *(name for script in scripts for name in options_of_script(script))}


def _options_below(command) -> Iterator[str]:
    yield from _options_of_command(command)
    for inner in getattr(command, "commands", {}).values():
        yield from _options_below(inner)


def inline_commands(text: str) -> list[str]:
    """Commands between backticks; a lone name as `python` is none."""
    starts = ("storyend ", "make ", "pip install ", *(f"{name} " for name in LAUNCHERS))
    return [code for code in inline_code(text) if code.startswith(starts)]


@every_document
def test_links_lead_somewhere(path):
    assert not dead_links(path.read_text(encoding="utf-8"), path.parent)


def test_a_dead_link_is_seen(tmp_path):
    (tmp_path / "there.md").write_text("# Some `part` of it\n")
    text = "# Own\n[a](there.md#some-part-of-it) [b](https://example.org/x) [c](#own) ![d](gone.png)\n\n[e](gone.md)"
    assert dead_links(text, tmp_path) == ["gone.png", "gone.md"]
    assert dead_links("[a](there.md#gone) [b](#gone)", tmp_path) == ["there.md#gone", "#gone"]


@every_document
def test_commands_exist_with_their_options(path):
    text = path.read_text(encoding="utf-8")
    typed = [command for block in blocks_of(text, "bash") for command in commands_in(block.code)]
    for command in [*typed, *inline_commands(text)]:
        assert wrong_command(command) is None, f"{command}: {wrong_command(command)}"
    for command in typed:
        if command.startswith("storyend"):
            assert storyend_usage_error(shlex.split(command)) is None, command


@every_document
def test_options_on_their_own_exist(path):
    named = {
        code.split()[0].partition("=")[0] for code in inline_code(path.read_text(encoding="utf-8")) if code[:2] == "--"
    }
    assert named <= all_options()


@pytest.mark.parametrize(
    ("command", "wrong"),
    [
        ("storyend", "has no command"),
        ("storyend paint", "has no command `paint`"),
        ("storyend annotate draw", "`storyend annotate` has no command `draw`"),
        ("storyend generate --colour red", "--colour"),
        ("accelerate launch examples/paint.py", "examples/paint.py is not there"),
        ("accelerate launch --config_file examples/none.yaml examples/train.py", "examples/none.yaml is not there"),
        ("python examples/evaluate.py --colour red", "examples/evaluate.py has no option --colour"),
        ("accelerate launch examples/train.py --data_dir it --colour red", "has no option --colour"),
        ("sbatch examples/slurm/train.sbatch --colour red", "has no option --colour"),
        ("make tea", "make has no"),
        ('pip install "hf_storyend[tea]"', "there is no extra ['tea']"),
    ],
)
def test_a_wrong_command_is_seen(command, wrong):
    assert wrong in (wrong_command(command) or "nothing")


@pytest.mark.parametrize(
    ("command", "wrong"), [("storyend generate --num_beams many", "--num_beams"), ("storyend push", "model")]
)
def test_a_wrong_value_is_seen(command, wrong):
    assert wrong in (storyend_usage_error(shlex.split(command)) or "nothing")


def test_a_command_over_two_lines_is_one():
    (block,) = blocks_of("```bash\nstoryend generate 'A.' \\\n    --do_sample   # why not\n# nothing\n```\n", "bash")
    assert commands_in(block.code) == ["storyend generate 'A.' --do_sample"]


def test_code_inside_a_list_is_found_with_what_it_prints():
    text = "- so:\n\n  ```python\n  print(1)\n  ```\n  ```text\n  1\n  ```\n"
    (block,) = blocks_of(text, "python")
    assert (block.code, block.shown) == ("print(1)\n", "1\n")


@every_document
def test_every_block_is_of_a_language_that_is_tested(path):
    assert {block.language for block in fenced_blocks(path.read_text(encoding="utf-8"))} <= LANGUAGES


def test_citation_and_changelog_are_of_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors", "license", "version"} <= citation.keys()
    paper = citation["preferred-citation"]
    assert "1808.10113" in paper["url"] and [person["family-names"] for person in paper["authors"]][0] == "Guan"
    changes = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    released = [name for name in changes if name != "Unreleased"]
    assert released[0] == citation["version"] == version("hf_storyend")
