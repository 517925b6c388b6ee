"""A push takes nothing from outside the model directory, whatever the directory's author put there."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from hub.hub_server import MY_TOKEN
from hub.test_push import OWN_FILES, REPO, pushed, run_command
from huggingface_hub import HfApi
from safetensors.torch import load_file, save_file

from hf_storyend.hub import plan_push, push
from hf_storyend.hub.verify_code import installed_code

SECRET = "-----BEGIN A PRIVATE KEY-----"


@pytest.fixture
def secret(tmp_path) -> Path:
    path = tmp_path / "home" / "id_rsa"
    path.parent.mkdir()
    path.write_text(SECRET)
    return path


def replace_by_link(path: Path, target: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def link_card(folder: Path, secret: Path) -> None:
    replace_by_link(folder / "README.md", secret)


def link_results(folder: Path, secret: Path) -> None:
    replace_by_link(folder / ".eval_results" / "storyend.yaml", secret)


def link_the_folder_of_results(folder: Path, secret: Path) -> None:
    (folder / ".eval_results" / "storyend.yaml").unlink()
    (folder / ".eval_results").rmdir()
    (secret.parent / "storyend.yaml").write_text(SECRET)
    (folder / ".eval_results").symlink_to(secret.parent)


def link_tokens(folder: Path, secret: Path) -> None:
    secret.write_text(json.dumps({SECRET: 1}))
    replace_by_link(folder / "added_tokens.json", secret)


def link_generation_settings(folder: Path, secret: Path) -> None:
    secret.write_text(json.dumps({"max_new_tokens": 3, "note": SECRET}))
    replace_by_link(folder / "generation_config.json", secret)


def link_metrics(folder: Path, secret: Path) -> None:
    secret.write_text(json.dumps({"run": {"system": "ie", "data": SECRET, "num_processes": 1}}))
    replace_by_link(folder / "metrics.json", secret)


def index_with_absolute_names(folder: Path, secret: Path) -> None:
    index = {"weight_map": {"a": str(secret), "b": "model.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def index_with_names_above(folder: Path, secret: Path) -> None:
    index = {"weight_map": {"a": "../home/id_rsa", "b": "model.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def link_shard(folder: Path, secret: Path) -> None:
    replace_by_link(folder / "model-1.safetensors", secret)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "model-1.safetensors"}}))


def code_above(folder: Path, secret: Path) -> None:
    (secret.parent / "secret.py").write_text(f"# {SECRET}")
    config = json.loads((folder / "config.json").read_text())
    config["auto_map"]["AutoProcessor"] = "../home/secret.Secret"
    (folder / "config.json").write_text(json.dumps(config))


def import_from_above(folder: Path, secret: Path) -> None:
    (secret.parent / "secret.py").write_text(f"# {SECRET}")
    path = folder / "losses.py"
    path.write_text(path.read_text() + "\n\nif False:\n    from ./../home/secret import key\n")


def link_code(folder: Path, secret: Path) -> None:
    replace_by_link(folder / "losses.py", secret)


def link_of_a_link(folder: Path, secret: Path) -> None:
    (folder / "notes.md").symlink_to(secret)
    (folder / "README.md").unlink(missing_ok=True)
    (folder / "README.md").symlink_to("notes.md")


def cache_that_is_none(folder: Path, secret: Path) -> None:
    """Looks like a snapshot of the Hub's cache, whose blobs are somebody's home."""
    (folder.parent / "blobs").symlink_to(secret.parent)
    replace_by_link(folder / "README.md", folder.parent / "blobs" / secret.name)


ATTACKS = [
    import_from_above,
    link_code,
    link_of_a_link,
    cache_that_is_none,
    link_card,
    link_results,
    link_the_folder_of_results,
    link_tokens,
    link_generation_settings,
    link_metrics,
    index_with_absolute_names,
    index_with_names_above,
    link_shard,
    code_above,
]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_nothing_from_outside_is_pushed(hub, api, folder, secret, attack):
    attack(folder, secret)
    with pytest.raises(ValueError, match="outside|beside"):
        push(folder, REPO, allow_changed_code=True, api=api)
    assert not hub.repos


def test_a_cache_whose_blobs_are_elsewhere(hub, api, folder, secret, tmp_path):
    snapshot = tmp_path / "cache" / "snapshots" / "abc"
    shutil.copytree(folder, snapshot)
    (tmp_path / "cache" / "blobs").symlink_to(secret.parent)
    replace_by_link(snapshot / "README.md", tmp_path / "cache" / "blobs" / secret.name)
    with pytest.raises(ValueError, match="outside"):
        push(snapshot, REPO, api=api)
    assert not hub.repos


def test_shards_that_nobody_has_loaded(hub, api, folder):
    """`from_pretrained` would take the one file, and a push the shards of the index."""
    (folder / "model-1.safetensors").write_bytes(b"anything")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "model-1.safetensors"}}))
    with pytest.raises(ValueError, match="has model.safetensors and model.safetensors.index.json"):
        push(folder, REPO, api=api)
    assert not hub.repos


def test_a_directory_that_is_a_link_is_fine(hub, api, folder, tmp_path):
    (tmp_path / "link").symlink_to(folder)
    push(tmp_path / "link", REPO, api=api)
    assert "model.safetensors" in pushed(hub)


def test_a_link_within_the_directory_is_fine(hub, api, folder):
    (folder / "card.md").write_text("---\nlanguage: en\n---\n\nMine.\n")
    (folder / "README.md").symlink_to("card.md")
    push(folder, REPO, api=api)
    assert pushed(hub)["README.md"].endswith(b"Mine.\n")


def test_a_snapshot_in_the_cache_of_the_hub_is_fine(hub, api, folder):
    push(folder, "me/first", api=api)
    snapshot = Path(api.snapshot_download("me/first"))
    assert (snapshot / "config.json").is_symlink()
    push(snapshot, REPO, api=api)
    assert pushed(hub).keys() == OWN_FILES | installed_code().keys()
    # The blobs of another repository are outside.
    other = snapshot.parents[2] / "models--me--other" / "blobs" / "1"
    other.parent.mkdir(parents=True)
    other.write_text(SECRET)
    replace_by_link(snapshot / "README.md", other)
    with pytest.raises(ValueError, match="outside"):
        push(snapshot, REPO, api=api)


def test_only_known_names_are_pushed(hub, api, folder):
    (folder / ".eval_results" / "notes.yaml").write_text(SECRET)
    (folder / "model-2.safetensors").write_text(SECRET)
    push(folder, REPO, api=api)
    assert pushed(hub).keys() == OWN_FILES | installed_code().keys()


def test_weights_are_loaded_before_they_go(hub, api, folder):
    weights = folder / "model.safetensors"
    tensors = load_file(weights)
    for content in (b"not weights", weights.read_bytes()[:-40]):
        weights.write_bytes(content)
        for allow_changed_code in (True, False):
            with pytest.raises(ValueError, match="safetensors|loaded"):
                push(folder, REPO, allow_changed_code=allow_changed_code, api=api)
    save_file({**tensors, "lm_head.bias": torch.full_like(tensors["lm_head.bias"], torch.nan)}, weights)
    for allow_changed_code in (True, False):
        with pytest.raises(ValueError, match=r"lm_head\.bias"):
            push(folder, REPO, allow_changed_code=allow_changed_code, api=api)
    assert not hub.repos


def test_a_dry_run_without_the_hub(folder):
    plan = plan_push(folder, REPO, api=HfApi(endpoint="http://127.0.0.1:9", token=MY_TOKEN))
    assert not plan.is_compared and set(plan.new) == OWN_FILES | installed_code().keys()
    plan = plan_push(folder, "ie-msa-ca", api=HfApi(endpoint="http://127.0.0.1:9", token=MY_TOKEN))
    assert plan.repo_id == "ie-msa-ca"


def test_the_command_of_a_dry_run_without_the_hub(hub, folder, tmp_path):
    result = run_command(hub, tmp_path, "push", str(folder), "--repo_id", REPO, "--dry_run", HF_HUB_OFFLINE="1")
    assert result.returncode == 0, result.stderr
    assert "new      model.safetensors" in result.stdout and "out of reach of the Hub" in result.stdout
    assert not hub.requests
