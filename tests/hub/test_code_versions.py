"""Code that travels says what it is, what it is for, and whether somebody has changed it."""

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import torch
import transformers
from huggingface_hub import HfApi
from typer.testing import CliRunner

from hf_storyend import IncrementalEncoderForEndingGeneration
from hf_storyend.hub import HubError, check_code
from hf_storyend.hub.verify_code import installed_code
from hf_storyend.modeling import loading
from hf_storyend.modeling.loading import RELEASE, SUPPORTED_TRANSFORMERS, check_transformers

ROOT = Path(__file__).parent.parent.parent


def test_the_release_and_the_range_are_those_of_the_package():
    lowest, limit = SUPPORTED_TRANSFORMERS
    assert version("hf_storyend") == RELEASE
    assert f'"transformers>={lowest},<{limit}"' in (ROOT / "pyproject.toml").read_text()


def test_a_saved_model_records_the_versions_anew(model, tmp_path):
    model.config.library_versions = {"hf_storyend": "0.0.1"}
    model.save_pretrained(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["library_versions"] == {
        "hf_storyend": RELEASE,
        "transformers": transformers.__version__,
        "torch": str(torch.__version__),
        "supported_transformers": ">=5.18.0,<6",
    }
    loaded = IncrementalEncoderForEndingGeneration.from_pretrained(tmp_path)
    assert loaded.config.library_versions["hf_storyend"] == RELEASE


@pytest.fixture
def warnings(monkeypatch) -> list[str]:
    logged: list[str] = []
    monkeypatch.setattr(loading.logger, "warning", logged.append)
    return logged


@pytest.mark.parametrize("installed", ["5.18.0", "5.22.2", "5.19.0.dev0", "5.999"])
def test_versions_of_the_range_pass_in_silence(monkeypatch, warnings, installed):
    monkeypatch.setattr(loading.transformers, "__version__", installed)
    check_transformers()
    assert not warnings


@pytest.mark.parametrize("installed", ["4.57.1", "5.17.9", "5.9"])
def test_older_ones_are_refused(monkeypatch, installed):
    monkeypatch.setattr(loading.transformers, "__version__", installed)
    with pytest.raises(ImportError, match=rf"for transformers>=5\.18\.0,<6; {installed} is installed.*pip install"):
        check_transformers()


@pytest.mark.parametrize("installed", ["6.0.0", "6.0.0.dev0", "10.1"])
def test_newer_ones_are_warned_of(monkeypatch, warnings, installed):
    monkeypatch.setattr(loading.transformers, "__version__", installed)
    check_transformers()
    (warning,) = warnings
    assert f"{installed} is installed, which it was never run with" in warning


def test_from_pretrained_says_so(folder, tmp_path):
    code = f"""
import os
os.environ["HF_HOME"] = {str(tmp_path / "home")!r}
import transformers
transformers.__version__ = "5.2.0"
transformers.AutoConfig.from_pretrained({str(folder)!r}, trust_remote_code=True)
"""
    result = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True)
    assert "is for transformers>=5.18.0,<6; 5.2.0 is installed, which is too old" in result.stderr


def test_check_code_lists_what_differs(folder):
    assert check_code(folder).is_identical
    assert check_code(folder).identical == sorted(installed_code())
    changed, removed, *_ = installed_code()
    (folder / changed).write_text((folder / changed).read_text() + "\n")
    (folder / removed).unlink()
    (folder / "mine.py").write_text("")
    check = check_code(folder)
    assert (check.different, check.missing, check.foreign) == ([changed], [removed], ["mine.py"])
    assert not check.is_identical and check.library_versions["hf_storyend"] == RELEASE


def test_check_code_of_what_is_no_model(tmp_path):
    with pytest.raises(ValueError, match=r"no config\.json"):
        check_code(tmp_path)


def test_check_code_of_what_is_not_there(api, hub):
    with pytest.raises(HubError, match="has no `me/nothing`"):
        check_code("me/nothing", api=api)
    with pytest.raises(HubError, match="can't be reached"):
        check_code("me/nothing", api=HfApi(endpoint="http://127.0.0.1:9", token=False))


def test_the_command(folder):
    from hf_storyend.cli.main import app

    same = CliRunner().invoke(app, ["check-code", str(folder)])
    assert same.exit_code == 0 and "identical" in same.stdout and f"hf_storyend {RELEASE}" in same.stdout
    (folder / "knowledge_table.py").unlink()
    other = CliRunner().invoke(app, ["check-code", str(folder)])
    assert other.exit_code == 1 and "missing: knowledge_table.py" in other.stdout
