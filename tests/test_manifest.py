"""Manifests: what is verified, what is damage, and that a manifest names nothing outside its directory."""

import json
import os
import shutil
from pathlib import Path

import pytest
from training_runs import small_options
from typer.testing import CliRunner

from hf_storyend.cli.main import app
from hf_storyend.data import PrepareOptions, prepare
from hf_storyend.manifest import ManifestError, find_damage, read_manifest, verify, write_manifest
from hf_storyend.training import train


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    """A directory with prepared data and a finished run."""
    folder = tmp_path_factory.mktemp("written")
    prepare(PrepareOptions(output_dir=folder / "data", vocab_size=300, hidden_size=8, num_layers=1, embedding_size=6))
    train(small_options(folder / "data", folder / "run", max_steps=4, eval_steps=2, save_steps=2))
    return folder


@pytest.fixture
def copied(written, tmp_path) -> Path:
    shutil.copytree(written, tmp_path / "written")
    return tmp_path / "written"


def test_everything_that_is_written_can_be_verified(written):
    kinds = {Path(found.path).name: found.kind for found in verify(written / "run") + verify(written / "data")}
    assert kinds == {
        "run": "model",
        "best": "best model",
        "checkpoint-2": "checkpoint",
        "checkpoint-4": "checkpoint",
        "data": "prepared data",
    }
    for name in ("run", "run/best", "run/checkpoint-4", "data"):
        assert not any(found.damage or found.added for found in verify(written / name))


@pytest.mark.parametrize("name", ["run", "run/best", "run/checkpoint-4", "data"])
def test_every_file_matters(copied, name):
    folder = copied / name
    for file in read_manifest(folder)["files"]:
        content = (folder / file).read_bytes()
        (folder / file).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        assert find_damage(folder) == [f"{file} differs from what was written"]
        (folder / file).unlink()
        assert find_damage(folder) == [f"{file} is missing"]
        (folder / file).write_bytes(content)
    assert not find_damage(folder)


def test_the_manifest_says_of_which_run_and_update(written):
    best, final = (read_manifest(written / "run" / name)["about"] for name in ("best", ""))
    assert best["step"] in (2, 4) and best["identity"] == final["identity"] and final["step"] == 4


def test_a_card_may_be_edited(copied):
    (copied / "run" / "README.md").write_text("Mine.")
    assert not any(found.damage for found in verify(copied / "run"))


def test_what_was_added_is_told(copied):
    (copied / "run" / "best" / "mine.py").write_text("")
    (found,) = verify(copied / "run" / "best")
    assert found.added == ["mine.py"] and not found.damage


@pytest.mark.parametrize("content", ["", "[]", '{"files": 3}', '{"files": {"a": "b"}}', '{"files": {"../a": "%s"}}'])
def test_what_is_no_manifest(tmp_path, content):
    (tmp_path / "manifest.json").write_text(content.replace("%s", "0" * 64))
    with pytest.raises(ManifestError, match=r"manifest\.json"):
        read_manifest(tmp_path)
    (found,) = verify(tmp_path)
    assert found.damage and found.kind is None


def test_what_stands_in_place_of_a_file(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
    write_manifest(tmp_path, "model")
    for name in ("a", "b"):
        (tmp_path / name).unlink()
    os.mkfifo(tmp_path / "a")
    (tmp_path / "b").mkdir()
    assert find_damage(tmp_path) == ["a is no file", "b is no file"]


def test_all_runs_of_a_comparison(copied):
    runs = copied / "compared" / "systems"
    runs.mkdir(parents=True)
    (copied / "run").rename(runs / "ie")
    (runs / "hlstm").mkdir()
    (runs / "ie" / "best" / "vocab.json").unlink()
    found = verify(copied / "compared")
    assert [Path(entry.path).relative_to(runs).as_posix() for entry in found] == [
        "ie",
        "ie/best",
        "ie/checkpoint-2",
        "ie/checkpoint-4",
    ]
    assert [entry.damage for entry in found if entry.damage] == [["vocab.json is missing"]]


def test_an_interrupted_save_is_told(tmp_path):
    write_manifest(tmp_path, "model")
    (tmp_path / ".results.0a1b2c3d.complete").mkdir()
    *_, found = verify(tmp_path)
    assert "start the same training command again" in found.damage[0]


def test_the_command(copied):
    run = str(copied / "run")
    intact = CliRunner().invoke(app, ["verify", run])
    assert intact.exit_code == 0 and intact.stdout.count("intact") == 4
    (copied / "run" / "best" / "vocab.json").unlink()
    damaged = CliRunner().invoke(app, ["verify", run])
    assert damaged.exit_code == 1 and "vocab.json is missing" in damaged.stdout
    found = json.loads(CliRunner().invoke(app, ["verify", run, "--json"]).stdout)
    assert [entry["damage"] for entry in found if entry["kind"] == "best model"] == [["vocab.json is missing"]]


def test_the_command_of_what_has_no_manifest(tmp_path):
    result = CliRunner().invoke(app, ["verify", str(tmp_path)])
    assert isinstance(result.exception, ValueError) and "has no manifest.json" in str(result.exception)
