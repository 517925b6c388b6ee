"""Source distribution and wheel hold all that the package needs and work in an environment without the source tree."""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
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


def pip(*arguments: object) -> None:
    subprocess.run([sys.executable, "-m", "pip", "--quiet", *map(str, arguments)], check=True)


@pytest.fixture(scope="module")
def sdist(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    # A build leaves files behind; they should not lie in the source tree.
    shutil.copytree(ROOT, folder / "tree", ignore=NOT_COPIED)
    pip("install", "--target", folder / "tools", "setuptools>=77")
    command = [sys.executable, "-c", BUILD_SDIST, str(folder)]
    subprocess.run(command, check=True, cwd=folder / "tree", env={"PYTHONPATH": str(folder / "tools")})
    (path,) = folder.glob("*.tar.gz")
    return path


@pytest.fixture(scope="module")
def wheel(sdist, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-deps", "--wheel-dir", folder, sdist)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture
def installed(tmp_path) -> Callable[[Path], Path]:
    """Installs a file into an environment of its own, whose dependencies are those of this one; gives its `bin`."""

    def install(path: Path) -> Path:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
        (packages,) = (tmp_path / "venv").glob("lib/*/site-packages")
        # A path in a .pth file does not read the .pth files there: an editable install stays out.
        others = [path for path in sys.path if path.endswith("site-packages")]
        (packages / "dependencies.pth").write_text("\n".join(others) + "\n", encoding="utf-8")
        pip("--python", tmp_path / "venv", "install", "--no-deps", "--ignore-installed", path)
        return tmp_path / "venv" / "bin"

    return install


def expected_files() -> set[str]:
    """What must be in the package, by its name there: every module, and every file that a module reads."""
    files = {path.relative_to(ROOT) for path in (ROOT / "hf_storyend").rglob("*") if path.is_file()}
    files = {path for path in files if "__pycache__" not in path.parts}
    names = {str(path).replace("hf_storyend/cli/", "hf_storyend.cli/") for path in files}
    names |= {f"hf_storyend/modeling/{path.name}" for path in (ROOT / "modeling").glob("*.py")}
    return names | {"hf_storyend/hub_cards/template.md", "hf_storyend/hub_cards/space/app.py"}


@pytest.mark.slow
def test_the_wheel_holds_every_module_and_asset(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert not expected_files() - names
    assert not [name for name in names if name.startswith(("tests/", "modeling/", "benchmarks/"))]
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
@pytest.mark.parametrize("kind", ["sdist", "wheel"])
def test_it_installs_and_writes_an_ending(kind, installed, request, tmp_path):
    programs = installed(request.getfixturevalue(kind))

    def run(program: str, *arguments: str) -> str:
        command = [str(programs / program), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path, env={}).stdout

    assert "generate" in run("storyend", "--help")
    (written,) = json.loads(run("storyend", "generate", STORY, "--json"))
    ending, place = run("python", "-c", THREE_LINES).splitlines()
    assert ending and ending == written["endings"][0]["ending"]
    assert Path(place).is_relative_to(tmp_path)


def test_commands_do_not_import_torch_to_show_help():
    code = "import sys, hf_storyend.cli.main; sys.exit('torch' in sys.modules or 'hf_storyend' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
def test_help_takes_less_than_a_second():
    def seconds() -> float:
        """Of the processor: what else the machine does should not count."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "hf_storyend.cli.main", "--help"], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime

    assert min(seconds() for _ in range(5)) < 1
