"""The Space: a directory that runs without the package installed, with metadata that the Hub accepts."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path

import pytest
from huggingface_hub import RepoCard
from packaging.requirements import Requirement
from typer.testing import CliRunner

from hf_storyend.cli.main import app

gradio = pytest.importorskip("gradio", reason="gradio is not installed")

from demo.demo_server import free_port, running  # noqa: E402
from gradio_client import Client  # noqa: E402

from hf_storyend.demo import write_space  # noqa: E402

ROOT = Path(__file__).parent.parent.parent
TEMPLATE = ROOT / "hub_cards" / "space"
# -S leaves out the editable install of the package; all but that is put back. Of the libraries that the package may
# use, those that the Space does not ask for can't be imported.
START = """
import sys
sys.path += {packages!r}
sys.path.insert(0, ".")
for name in {absent!r}:
    sys.modules[name] = None
sys.argv = ["app.py"]
import runpy, hf_storyend, hf_storyend.modeling
assert hf_storyend.__file__.startswith({space!r}) and hf_storyend.modeling.__file__.startswith({space!r})
runpy.run_path("app.py", run_name="__main__")
"""


def test_the_space_runs_without_the_package_installed(model_directory, copying_directory, tmp_path):
    space = tmp_path / "space"
    write_space(space, [model_directory, copying_directory])
    packages = [path for path in sys.path if path.endswith("site-packages")]
    absent = ["accelerate", "datasets", "isal", "lemminflect", "sacrebleu", "scipy", "statsmodels"]
    code = START.format(packages=packages, absent=absent, space=str(space))
    port = free_port()
    command = [sys.executable, "-S", "-I", "-c", code]
    with running(command, port, cwd=space, env={"GRADIO_SERVER_PORT": str(port)}) as server:
        client = Client(server.address, verbose=False)
        assert len(client.predict("Anna had a cake.", api_name="/endings")) == 1
        (other,) = client.predict("Anna had a cake.", system="copying (hlstm-copy)", api_name="/endings")
        assert "reads no knowledge" in " ".join(other["notes"])
        with pytest.raises(Exception, match="13 sentences, more than 12: .* the limit `max_sentences`."):
            client.predict("Anna had a cake. " * 13, api_name="/endings")


def test_the_space_holds_the_package_its_model_and_no_waste(tmp_path):
    result = CliRunner().invoke(app, ["demo", "--space", str(tmp_path / "space")], catch_exceptions=False)
    assert "--repo-type space" in result.stdout
    names = {path.relative_to(tmp_path / "space").as_posix() for path in (tmp_path / "space").rglob("*")}
    assert {"app.py", "README.md", "requirements.txt", "hf_storyend/demo/page.css"} <= names
    assert {
        "hf_storyend/modeling/modeling_incremental_encoder.py",
        "hf_storyend/assets/default_model/model.safetensors",
    } <= names
    assert "models.txt" not in names and not any("__pycache__" in name for name in names)


def test_a_name_on_the_hub_is_listed_and_a_directory_goes_in(model_directory, tmp_path, monkeypatch):
    # No network in tests: the name is not looked up.
    monkeypatch.setattr("hf_storyend.demo.space.ModelCache", lambda models: None)
    write_space(tmp_path / "space", [model_directory, "me/ie-msa-ca"])
    assert (tmp_path / "space" / "models.txt").read_text() == "models/knowing\nme/ie-msa-ca\n"
    assert (tmp_path / "space" / "models" / "knowing" / "model.safetensors").is_file()


def test_nothing_is_overwritten_and_nothing_half_is_left(model_directory, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ValueError, match="exists already"):
        write_space(tmp_path)
    twin = tmp_path / "twins" / "knowing"
    twin.parent.mkdir()
    twin.symlink_to(model_directory)
    with pytest.raises(ValueError, match="Two of the models are called `knowing`"):
        write_space(tmp_path / "space", [model_directory, str(twin)])
    assert {path.name for path in tmp_path.iterdir()} == {"mine.txt", "twins"}


def test_metadata_of_the_space():
    card = RepoCard.load(TEMPLATE / "README.md", repo_type="space")
    data = card.data.to_dict()
    assert data["sdk"] == "gradio" and data["app_file"] == "app.py" and data["license"] == "apache-2.0"
    assert data["sdk_version"] == pinned()["gradio"]
    assert len(data["short_description"]) <= 60


def test_requirements_of_the_space_are_those_of_the_package():
    asked = {Requirement(text).name: Requirement(text) for text in importlib.metadata.requires("hf_storyend")}
    lines = (TEMPLATE / "requirements.txt").read_text().splitlines()
    wanted = [Requirement(line) for line in lines if line[:1].isalpha()]
    assert {one.name for one in wanted} == {"matplotlib", "torch", "transformers"}
    for one in wanted:
        assert one.specifier == asked[one.name].specifier, one.name


def pinned() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return dict(line.split("==") for line in lines if "==" in line and not line.startswith("#"))


def test_the_app_of_the_space_is_short_enough_to_read():
    assert len((TEMPLATE / "app.py").read_text().splitlines()) < 30
