"""The pages on adding something are short, name files that are there, and work when they are followed."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from documents.markdown_code import ROOT, blocks_of, inline_code
from documents.shells import shell_environment

MAX_LINES = 40
ARROW_FORMAT = '''
def parse_arrow_line(line: bytes) -> Edge:
    """`oven -> UsedFor -> bake`."""
    parts = _decode(line).split(" -> ")
    if len(parts) != 3:
        raise MalformedLineError(f"{len(parts)} parts instead of 3")
    return Edge(_concept(parts[0]), _relation(parts[1]), _concept(parts[2]))
'''
READ_ARROWS = """
from hf_storyend.knowledge import read_edges
print([tuple(edge)[:3] for edge in read_edges("arrows.txt")])
"""


class Tree:
    """A copy of the package to change, laid out as it is installed."""

    def __init__(self, folder: Path):
        self.folder = folder
        not_copied = shutil.ignore_patterns("__pycache__", "*.safetensors")
        shutil.copytree(ROOT / "hf_storyend", folder / "hf_storyend", ignore=not_copied)
        for name in ("modeling", "hub_cards"):
            shutil.copytree(ROOT / name, folder / "hf_storyend" / name, ignore=not_copied)

    def put(self, file: str, new: str, *, before: str) -> None:
        path = self.folder / file
        head, found, tail = path.read_text(encoding="utf-8").partition(before)
        assert found, f"{file} has no {before!r} any more"
        path.write_text(head + new + found + tail, encoding="utf-8")

    def python(self, *arguments: str) -> str:
        # A folder on the path comes before an editable installation.
        environment = shell_environment(PYTHONPATH=str(self.folder))
        command = [sys.executable, *arguments]
        done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def tree(tmp_path) -> Tree:
    return Tree(tmp_path / "tree")


def page(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")


def python_of(name: str) -> list[str]:
    return [block.code for block in blocks_of(page(name), "python")]


@pytest.mark.parametrize("name", ["adding_a_system", "adding_a_knowledge_source", "adding_a_metric"])
def test_pages_are_short_and_name_files_that_are_there(name):
    assert len(page(name).splitlines()) <= MAX_LINES
    files = [word for word in inline_code(page(name)) if re.fullmatch(r"[\w/]+/\w+\.\w+", word) and "NAME" not in word]
    assert files and not [file for file in files if not (ROOT / file).exists()]


@pytest.mark.slow
def test_a_system_is_added(tree):
    (line,) = python_of("adding_a_system")
    tree.put("hf_storyend/systems.py", textwrap.indent(line.rstrip() + ",\n", " " * 8), before="    )\n}\n")
    name, description = re.findall(r'"(.+?)"', line)[:2]
    assert re.search(rf"{name} .*{description}", tree.python("-m", "hf_storyend.cli.main", "systems"))
    tree.python("-m", "hf_storyend.hub.card", ".")
    assert description in (tree.folder / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_metric_is_added(tree):
    function, line = python_of("adding_a_metric")
    title = re.search(r'`("questions":\s+".+?")`', page("adding_a_metric"))[1]
    tree.put("hf_storyend/evaluation/text_metrics.py", f"{function}\n\n", before="def distinct")
    tree.put("hf_storyend/evaluation/scoring.py", "    is_question,\n", before="    mean_of,\n")
    tree.put("hf_storyend/evaluation/scoring.py", textwrap.indent(line, " " * 8), before="        if self._training")
    tree.put("hf_storyend/evaluation/results.py", f"    {' '.join(title.split())},\n", before='    "length":')
    (tree.folder / "endings.txt").write_text("Did she sleep?\nShe slept.\n", encoding="utf-8")
    arguments = ["score", "--endings", "endings.txt", "--max_stories", "2", "--output_dir", "scored"]
    tree.python("-m", "hf_storyend.cli.main", *arguments)
    table = (tree.folder / "scored" / "endings" / "evaluation.md").read_text(encoding="utf-8")
    assert re.search(r"Endings that are questions, % \| 50\.00", table)


@pytest.mark.slow
def test_a_file_format_of_knowledge_is_added(tree):
    formats = "hf_storyend/knowledge/formats.py"
    tree.put(formats, f"{ARROW_FORMAT.lstrip()}\n\n", before="class DumpLineParser")
    line = "        (parse_arrow_line, lambda block: _parse_block(parse_arrow_line, block)),\n"
    tree.put(formats, line, before="    ]\n    lines =")
    (tree.folder / "arrows.txt").write_text("oven -> UsedFor -> bake\n", encoding="utf-8")
    assert tree.python("-c", READ_ARROWS) == "[('oven', 'UsedFor', 'bake')]\n"
