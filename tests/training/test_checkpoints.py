"""Checkpoints are written atomically, and damage is detected."""

import json
import os
from pathlib import Path

import pytest
import torch

from hf_storyend.training.checkpoints import (
    Checkpoint,
    CheckpointError,
    check_identity,
    find_checkpoints,
    latest_valid_checkpoint,
    load_checkpoint,
    save_checkpoint,
    verify_checkpoint,
)


def checkpoint(step: int) -> Checkpoint:
    shared = torch.arange(6.0).reshape(2, 3)
    weights = {"weight": shared, "tied": shared, "view": shared.T}
    return Checkpoint(step, weights, {"weight/exp_avg": torch.full((2,), float(step))}, {"run": {"epoch": 1}})


def test_round_trip(tmp_path):
    path = save_checkpoint(tmp_path, checkpoint(12), keep=2)
    loaded = load_checkpoint(path)
    assert path.name == "checkpoint-12" and loaded.step == 12 and loaded.state == {"run": {"epoch": 1}}
    for name, tensor in checkpoint(12).weights.items():
        assert torch.equal(loaded.weights[name], tensor)
    assert torch.equal(loaded.optimizer["weight/exp_avg"], torch.full((2,), 12.0))


def test_only_the_newest_are_kept(tmp_path):
    for step in (2, 9, 10, 100):
        save_checkpoint(tmp_path, checkpoint(step), keep=2)
    assert [path.name for path in find_checkpoints(tmp_path)] == ["checkpoint-100", "checkpoint-10"]
    assert sorted(os.listdir(tmp_path)) == ["checkpoint-10", "checkpoint-100"]


def test_a_checkpoint_that_somebody_moved_to_another_disk_is_not_deleted_there(tmp_path):
    (tmp_path / "run").mkdir()
    for step in (1, 2):
        save_checkpoint(tmp_path / "run", checkpoint(step), keep=2)
    (tmp_path / "run" / "checkpoint-1").rename(tmp_path / "checkpoint-1")
    (tmp_path / "run" / "checkpoint-1").symlink_to(tmp_path / "checkpoint-1")
    save_checkpoint(tmp_path / "run", checkpoint(3), keep=2)
    assert sorted(os.listdir(tmp_path / "run")) == ["checkpoint-2", "checkpoint-3"]
    verify_checkpoint(tmp_path / "checkpoint-1")


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "state.json", "manifest.json"])
@pytest.mark.parametrize("damage", ["flip", "cut", "remove", "empty"])
def test_damage_is_detected_and_the_previous_checkpoint_used(tmp_path, caplog, name, damage):
    good = save_checkpoint(tmp_path, checkpoint(1), keep=2)
    bad = save_checkpoint(tmp_path, checkpoint(2), keep=2) / name
    content = bad.read_bytes()
    flipped = content[: len(content) // 2] + bytes([content[len(content) // 2] ^ 1]) + content[len(content) // 2 + 1 :]
    if damage == "remove":
        bad.unlink()
    else:
        bad.write_bytes({"flip": flipped, "cut": content[:-5], "empty": b""}[damage])
    with pytest.raises(CheckpointError, match="checkpoint-2"):
        load_checkpoint(bad.parent)
    assert latest_valid_checkpoint(tmp_path) == good
    assert [record.levelname for record in caplog.records] == ["WARNING"] and "checkpoint-2" in caplog.text


@pytest.mark.parametrize(
    ("name", "message"),
    [("../../outside", "within the directory"), ("/etc/passwd", "within the directory"), ("x", "does not list")],
)
def test_a_manifest_can_not_point_elsewhere(tmp_path, name, message):
    path = save_checkpoint(tmp_path / "run", checkpoint(1), keep=1)
    outside = tmp_path / "outside"
    outside.write_text("x")
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["files"][name] = "0" * 64
    (path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(CheckpointError, match=message):
        verify_checkpoint(path)


def test_no_checkpoint_is_no_error(tmp_path, caplog):
    assert latest_valid_checkpoint(tmp_path) is None and not caplog.records


def test_nothing_is_left_where_writing_fails(tmp_path):
    good = save_checkpoint(tmp_path, checkpoint(1), keep=1)
    broken = checkpoint(2)
    broken.state["run"] = {"not": object()}
    with pytest.raises(TypeError):
        save_checkpoint(tmp_path, broken, keep=1)
    assert list(tmp_path.iterdir()) == [good]
    load_checkpoint(good)


def test_checkpoints_of_earlier_versions_are_refused_with_the_new_names():
    saved = {"seed": 0, "encoder_loss_share": 1.0, "num_negatives": None}
    current = {"seed": 0, "encoder_loss_sampling_ratio": 1.0, "num_sampled_classes": None}
    message = "written by an earlier version.*`encoder_loss_share` is now `encoder_loss_sampling_ratio`.*output_dir"
    with pytest.raises(ValueError, match=message):
        check_identity(Path("checkpoint-3"), saved, current)
    check_identity(Path("checkpoint-3"), current, current)


def test_files_of_no_checkpoint_are_left_alone(tmp_path):
    (tmp_path / "checkpoint-final").mkdir()
    (tmp_path / "checkpoint-3.bak").mkdir()
    save_checkpoint(tmp_path, checkpoint(1), keep=1)
    assert [path.name for path in find_checkpoints(tmp_path)] == ["checkpoint-1"]
    assert Path(tmp_path / "checkpoint-final").is_dir()


def damage(path: Path) -> None:
    (path / "state.json").write_text("{}")


def test_a_damaged_checkpoint_does_not_count(tmp_path, caplog):
    """With two to keep and the newest of them damaged, the intact one is not the one to go."""
    for step in (1, 2, 3):
        save_checkpoint(tmp_path, checkpoint(step), keep=2)
    damage(tmp_path / "checkpoint-3")
    save_checkpoint(tmp_path, checkpoint(4), keep=2)
    assert sorted(os.listdir(tmp_path)) == ["checkpoint-2", "checkpoint-3.damaged-1", "checkpoint-4"]
    assert "checkpoint-3 is damaged" in caplog.text and "set aside as checkpoint-3.damaged-1" in caplog.text
    load_checkpoint(tmp_path / "checkpoint-2")


def test_damaged_checkpoints_are_kept_for_people_to_look_at(tmp_path):
    for _ in range(2):
        damage(save_checkpoint(tmp_path, checkpoint(3), keep=1))
        save_checkpoint(tmp_path, checkpoint(4), keep=1)
    assert sorted(os.listdir(tmp_path)) == ["checkpoint-3.damaged-1", "checkpoint-3.damaged-2", "checkpoint-4"]


def test_the_checkpoint_that_was_just_written_is_never_deleted(tmp_path):
    """Also where there are later ones, of a run that went back to an earlier checkpoint."""
    for step in (10, 20, 30):
        save_checkpoint(tmp_path, checkpoint(step), keep=3)
    for keep in (1, 2):
        path = save_checkpoint(tmp_path, checkpoint(15), keep=keep)
        load_checkpoint(path)
