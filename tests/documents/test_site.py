"""The documentation site: all public names are in its reference, links are right, and it builds without a warning."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import tomllib
from types import ModuleType, SimpleNamespace

import pytest
import yaml
from documents.markdown_code import ROOT

PACKAGES = sorted(path.parent.name for path in (ROOT / "hf_storyend").glob("*/__init__.py"))


@pytest.fixture(scope="module")
def hooks() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_hooks", ROOT / "docs" / "hooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def documented(page: str) -> set[str]:
    return set(re.findall(r"^::: .*\.(\w+)$", page, flags=re.MULTILINE))


def test_every_public_name_is_in_the_reference(hooks):
    pages = {name.split("/")[1].removesuffix(".md"): text for name, text in hooks.reference_pages().items()}
    public = {name: getattr(importlib.import_module(f"hf_storyend.{name}"), "__all__", []) for name in PACKAGES}
    public["modeling"] = importlib.import_module("hf_storyend.modeling").__all__
    for name, names in public.items():
        assert documented(pages.get(name, "")) == set(names), name
    everything = {name for text in pages.values() for name in documented(text)}
    assert set(importlib.import_module("hf_storyend").__all__) - {"__version__"} <= everything


def test_the_table_of_contents_lists_every_page(hooks):
    text = re.sub(r"!!python\S+", "", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    listed = set(re.findall(r"[\w/]+\.md", json.dumps(yaml.safe_load(text)["nav"])))
    there = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert listed == there | set(hooks.OUTSIDE.values()) | set(hooks.reference_pages())


@pytest.mark.parametrize(
    ("page", "link", "rewritten"),
    [
        ("index.md", "[a](docs/api.md#load)", "[a](api.md#load)"),
        ("index.md", "![a](docs/sources.png)", "![a](sources.png)"),
        ("index.md", "[a](#use) [b](https://example.org/x.md)", "[a](#use) [b](https://example.org/x.md)"),
        ("index.md", "[![a](https://example.org/b.svg)](LICENSE)", "![a](https://example.org/b.svg)"),
        ("tutorials/own_data.md", "[a](../../SECURITY.md)", "[a](../security.md)"),
        ("explanation.md", "[a](../README.md#use) `[b](c.md)`", "[a](index.md#use) `[b](c.md)`"),
        ("explanation.md", "[the loop](../examples/train.py)", "the loop"),
    ],
)
def test_links_are_those_of_the_site(hooks, page, link, rewritten):
    pages = {"api.md", "index.md", "security.md", "sources.png"}
    files = SimpleNamespace(get_file_from_path=lambda path: path if path in pages else None)
    described = SimpleNamespace(file=SimpleNamespace(src_uri=page))
    assert hooks.on_page_markdown(link, page=described, files=files) == rewritten
    with pytest.raises(ValueError, match=r"gone\.md leads nowhere"):
        hooks.on_page_markdown("[a](gone.md)", page=described, files=files)


@pytest.mark.slow
def test_it_builds_without_a_warning(tmp_path):
    pytest.importorskip("mkdocs", reason="the extra `docs` is not installed")
    pytest.importorskip("mkdocstrings", reason="the extra `docs` is not installed")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert done.returncode == 0 and "WARNING" not in done.stderr, done.stderr
    reference = (tmp_path / "reference" / "evaluation.html").read_text(encoding="utf-8")
    # A docstring, and the help of an option.
    assert (
        "Metrics of a system, and its endings." in reference and "Stories in a batch, over all processes." in reference
    )
    assert 'class="mermaid"' in (tmp_path / "architecture.html").read_text(encoding="utf-8")


def test_the_readme_is_short_and_its_badges_are_true():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150
    badges = re.findall(r"\[!\[(.*?)\]\(https://img\.shields\.io/badge/(\S+?)\)\]\((\S+?)\)", text)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    versions = [one.rpartition(" ")[2] for one in project["classifiers"] if re.search(r"Python :: 3\.\d+$", one)]
    assert [title for title, _, _ in badges] == [
        f"Licence: {project['license']}",
        f"Python: {' | '.join(versions)}",
        f"Paper: arXiv {project['urls']['Paper'].rpartition('/')[2]}",
    ]
    assert badges[0][1].startswith("licence-Apache--2.0-") and badges[2][2] == project["urls"]["Paper"]
    assert [version for version in versions if version not in badges[1][1]] == []
    assert len(re.findall(r"!\[[^\]]*\]\(docs/", text)) == 1, "one picture"


def test_the_lock_of_the_site_fits_that_of_the_tests():
    text = (ROOT / "requirements-docs.lock").read_text(encoding="utf-8")
    locked = dict(re.findall(r"^([\w.-]+)==([^ ;]+)", text, flags=re.MULTILINE))
    pinned = dict(
        re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), flags=re.MULTILINE)
    )
    pinned = {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in pinned.items()}
    assert {"mkdocs-material", "mkdocstrings-python", "jinja2"} <= locked.keys()
    assert {name: version for name, version in locked.items() if pinned.get(name, version) != version} == {}
    entries = re.split(r"^(?=\w)", text, flags=re.MULTILINE)[1:]
    assert all("--hash=sha256:" in entry for entry in entries)
