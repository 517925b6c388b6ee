"""Wheel, source distribution and editable install are complete and work in an environment of their own."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NOT_COPIED = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", ".hypothesis", "build", "*.egg-info")
BUILD_SDIST = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
STORY = "Mei put a cake in the oven. She fell asleep."
THREE_LINES = f"""
from transformers import pipeline
import hf_storyend
print(pipeline("story-ending", model=hf_storyend.default_model())({STORY!r})[0]["ending"])
print(hf_storyend.__file__)
"""
# What must not be imported to show help; everything else that takes long comes with one of these.
HEAVY = ("torch", "transformers", "datasets", "accelerate", "matplotlib", "gradio")


def pip(*arguments: object) -> None:
    subprocess.run([sys.executable, "-m", "pip", "--quiet", *map(str, arguments)], check=True)


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Path:
    """A copy of the source tree: a build leaves files behind."""
    folder = tmp_path_factory.mktemp("source") / "tree"
    shutil.copytree(ROOT, folder, ignore=NOT_COPIED)
    return folder


@pytest.fixture(scope="module")
def sdist(tree) -> Path:
    subprocess.run([sys.executable, "-c", BUILD_SDIST, str(tree.parent)], check=True, cwd=tree)
    (path,) = tree.parent.glob("*.tar.gz")
    return path


@pytest.fixture(scope="module")
def wheel(sdist, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, sdist)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture
def installed(tmp_path) -> Callable[..., Path]:
    """Installs into an environment of its own, whose dependencies are those of this one; returns its `bin`."""

    def install(*arguments: object) -> Path:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
        (packages,) = (tmp_path / "venv").glob("lib/*/site-packages")
        # A path in a .pth file does not read the .pth files there: an editable install stays out.
        others = [path for path in sys.path if path.endswith("site-packages")]
        (packages / "dependencies.pth").write_text("\n".join(others) + "\n", encoding="utf-8")
        settings = ("--no-deps", "--no-build-isolation", "--ignore-installed")
        pip("--python", tmp_path / "venv", "install", *settings, *arguments)
        return tmp_path / "venv" / "bin"

    return install


def expected_files() -> set[str]:
    """What must be in the package: every module, and every file that a module reads."""
    files = {path.relative_to(ROOT) for path in (ROOT / "hf_storyend").rglob("*") if path.is_file()}
    names = {path.as_posix() for path in files if "__pycache__" not in path.parts}
    names |= {f"hf_storyend/modeling/{path.name}" for path in (ROOT / "modeling").glob("*.py")}
    return names | {"hf_storyend/hub_cards/template.md", "hf_storyend/hub_cards/space/app.py"}


@pytest.mark.slow
def test_the_wheel_holds_every_module_and_asset(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert not expected_files() - names
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"hf_storyend"}
    assert [name for name in names if name.endswith("licenses/LICENSE")]


@pytest.mark.slow
def test_the_source_distribution_is_the_whole_project(sdist):
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout: there is nothing to compare with")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    # Names with a dot in front concern the repository alone.
    assert {name for name in listed if (ROOT / name).is_file() and not name.startswith(".")} <= names


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sdist", "wheel", "editable"])
def test_it_installs_and_writes_an_ending(kind, installed, tree, request, tmp_path):
    programs = installed("-e", tree) if kind == "editable" else installed(request.getfixturevalue(kind))

    def run(program: str, *arguments: str) -> str:
        command = [str(programs / program), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path, env={}).stdout

    assert "generate" in run("storyend", "--help")
    assert "# Story endings" in run("storyend", "card")
    (written,) = json.loads(run("storyend", "generate", STORY, "--json"))
    ending, place = run("python", "-c", THREE_LINES).splitlines()
    assert ending and ending == written["endings"][0]["ending"]
    assert Path(place).is_relative_to(tree if kind == "editable" else tmp_path)


def test_the_version_is_in_one_place():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    module, _, name = project["tool"]["setuptools"]["dynamic"]["version"]["attr"].rpartition(".")
    code = (ROOT / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
    assert re.findall(rf'^{name} = "(.*)"$', code, re.MULTILINE) == [version("hf_storyend")]
    assert project["project"]["dynamic"] == ["version"]


def test_make_names_paths_that_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    core = (
        re.search(r"CORE_TESTS := \$\(addprefix tests/,(.*?)\)\n", makefile, re.DOTALL)[1].replace("\\", " ").split()
    )
    modules = [f"tests/{name.replace('.', '/')}.py" for name in re.findall(r"cd tests .* -m ([\w.]+)", makefile)]
    scripts = re.findall(r"\bbenchmarks/\w+\.py", makefile)
    paths = [*(f"tests/{path}" for path in core), *modules, *scripts]
    assert core and modules and scripts and not [path for path in paths if not (ROOT / path).exists()]


def test_showing_help_imports_nothing_heavy():
    """That is what makes it fast; time itself depends on the machine."""
    code = f"import sys, hf_storyend.cli.main; sys.exit({set(HEAVY)} & sys.modules.keys() or None)"
    subprocess.run([sys.executable, "-c", code], check=True)
