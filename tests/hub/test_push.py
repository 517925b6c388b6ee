"""A push is one commit of exactly the model's files, or nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hub.hub_server import ANNS_TOKEN, MY_TOKEN, Hub
from huggingface_hub import HfApi

from hf_storyend.hub import HubError, plan_push, push
from hf_storyend.hub.verify_code import installed_code

REPO = "me/ie-msa-ca"
OWN_FILES = {
    ".eval_results/storyend.yaml",
    "README.md",
    "config.json",
    "generation_config.json",
    "knowledge.json",
    "model.safetensors",
    "tokenizer_config.json",
    "vocab.json",
    "word_forms.json",
}


def pushed(hub: Hub, branch: str = "main") -> dict[str, bytes]:
    files = hub.repos[REPO].files(branch)
    return {name: content for name, content in files.items() if name != ".gitattributes"}


def num_commits(hub: Hub) -> int:
    """Without the one that a new repository begins with."""
    return len(hub.repos[REPO].commits) - 1


def test_one_commit_of_exactly_the_models_files(hub, api, folder):
    done = push(folder, REPO, api=api)
    files = pushed(hub)
    assert files.keys() == OWN_FILES | installed_code().keys()
    assert all(files[name] == path.read_bytes() for name, path in installed_code().items())
    assert files["model.safetensors"] == (folder / "model.safetensors").read_bytes()
    assert not any(b"must not travel" in content for content in files.values())
    assert num_commits(hub) == 1 and done.commit_url.startswith(f"{hub.url}/{REPO}/commit/")
    assert hub.count("^PUT /lfs/") == 1


def test_the_card_is_made_and_names_the_repository(hub, api, folder):
    push(folder, REPO, api=api)
    assert f'name = "{REPO}"' in pushed(hub)["README.md"].decode()
    assert not (folder / "README.md").exists()


def test_a_card_of_ones_own_goes_up_as_it_is(hub, api, folder):
    (folder / "README.md").write_text("---\nlanguage: en\n---\n\nMine.\n")
    push(folder, REPO, api=api)
    assert pushed(hub)["README.md"] == b"---\nlanguage: en\n---\n\nMine.\n"


def test_a_second_push_does_nothing(hub, api, folder):
    push(folder, REPO, api=api)
    before = len(hub.requests)
    again = push(folder, REPO, api=api)
    assert again.commit_url is None and again.plan.is_empty and num_commits(hub) == 1
    assert not any(request.startswith(("POST", "PUT")) for request in hub.requests[before:])


def test_a_dry_run_says_what_would_go_and_writes_nothing(hub, api, folder):
    plan = plan_push(folder, REPO, api=api)
    assert set(plan.new) == OWN_FILES | installed_code().keys() and not plan.has_repo
    assert not hub.repos and not any(request.startswith(("POST", "PUT")) for request in hub.requests)


def test_only_what_changed_goes_up_and_stale_code_goes_away(hub, api, folder):
    push(folder, REPO, api=api)
    files = hub.repos[REPO].commits[hub.repos[REPO].branches["main"]]
    hub.repos[REPO].commit("main", {**files, "old_code.py": files["vocab.json"], "notes.md": files["vocab.json"]})
    (folder / "generation_config.json").write_text(json.dumps({"max_new_tokens": 7}))
    done = push(folder, REPO, api=api)
    assert list(done.plan.changed) == ["generation_config.json"] and not done.plan.new
    assert done.plan.removed == ["old_code.py"]
    assert "old_code.py" not in pushed(hub) and "notes.md" in pushed(hub)
    assert json.loads(pushed(hub)["generation_config.json"]) == {"max_new_tokens": 7}


def test_to_a_branch_and_privately(hub, api, folder):
    push(folder, "ie-msa-ca", private=True, revision="trial", api=api)
    assert hub.repos[REPO].private and "config.json" in pushed(hub, "trial") and not pushed(hub)


def test_private_is_not_taken_for_granted(hub, api, folder):
    api.create_repo(REPO)
    with pytest.raises(ValueError, match="public"):
        push(folder, REPO, private=True, api=api)
    assert num_commits(hub) == 0


@pytest.mark.parametrize("request_", ["POST .*/preupload/", "POST .*/objects/batch", "PUT /lfs/", "POST .*/commit/"])
@pytest.mark.parametrize("status", [503, 0])
def test_a_passing_error_is_passed_over(hub, api, folder, request_, status):
    hub.fail(request_, status, times=2)
    push(folder, REPO, api=api)
    assert num_commits(hub) == 1 and pushed(hub).keys() >= OWN_FILES


def test_a_commit_whose_answer_was_lost_is_not_made_twice(hub, api, folder):
    hub.fail("POST .*/commit/", 502, is_done_first=True)
    assert push(folder, REPO, api=api).plan.is_empty
    assert num_commits(hub) == 1


@pytest.mark.parametrize("request_", ["PUT /lfs/", "POST .*/commit/"])
def test_half_a_push_leaves_the_repository_as_it_was(hub, api, folder, request_):
    push(folder, REPO, api=api)
    before = pushed(hub)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\1")
    (folder / "vocab.json").write_text((folder / "vocab.json").read_text() + "\n")
    hub.fail(request_, 500, times=1000)
    with pytest.raises(HubError, match=r"error 500; `me/ie-msa-ca` is unchanged. Try again") as caught:
        push(folder, REPO, api=api)
    assert "\n" not in str(caught.value)
    assert pushed(hub) == before and num_commits(hub) == 1
    hub.failures.clear()
    push(folder, REPO, api=api)
    assert pushed(hub)["model.safetensors"] == weights.read_bytes() and num_commits(hub) == 2


def test_what_somebody_else_has_committed_meanwhile_is_not_lost(hub, api, folder, monkeypatch):
    push(folder, REPO, api=api)
    (folder / "generation_config.json").write_text("{}")
    repo, create_commit = hub.repos[REPO], HfApi.create_commit

    def beaten(self, *args, **kwargs):
        monkeypatch.setattr(HfApi, "create_commit", create_commit)
        files = repo.commits[repo.branches["main"]]
        repo.commit("main", {**files, "notes.md": files["vocab.json"]})
        return create_commit(self, *args, **kwargs)

    monkeypatch.setattr(HfApi, "create_commit", beaten)
    push(folder, REPO, api=api)
    assert "notes.md" in pushed(hub) and pushed(hub)["generation_config.json"] == b"{}"
    assert hub.count("POST .*/commit/") == 3


@pytest.mark.parametrize(
    ("token", "repo_id", "sentence"),
    [
        ("hf_wrong_0123456789", REPO, "does not accept the token"),
        (MY_TOKEN, "ann/ie-msa-ca", "may not write to `ann/ie-msa-ca`"),
        (MY_TOKEN, "ann/secret", "may not write to `ann/secret`"),
        (MY_TOKEN, "ann/public", "may not write to `ann/public`"),
    ],
)
def test_refusals_are_one_sentence_without_the_token(hub, folder, capfd, caplog, token, repo_id, sentence):
    for name, private in (("ann/secret", True), ("ann/public", False)):
        HfApi(endpoint=hub.url, token=ANNS_TOKEN).create_repo(name, private=private)
    with pytest.raises(HubError, match=sentence) as caught:
        push(folder, repo_id, api=HfApi(endpoint=hub.url, token=token))
    out, err = capfd.readouterr()
    assert token not in f"{caught.value}{caught.value.__cause__}{out}{err}{caplog.text}"
    assert "\n" not in str(caught.value)


def test_no_token_and_no_network(hub, folder, monkeypatch, tmp_path):
    with pytest.raises(HubError, match="http://127.0.0.1:9 can't be reached"):
        push(folder, REPO, api=HfApi(endpoint="http://127.0.0.1:9", token=MY_TOKEN))
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "no token"))
    with pytest.raises(ValueError, match="hf auth login"):
        push(folder, REPO)


@pytest.mark.parametrize("name", ["model.safetensors", "knowledge.json", "knowledge_table.py", "config.json"])
def test_an_incomplete_directory_is_refused_by_name(hub, api, folder, name):
    (folder / name).unlink()
    with pytest.raises(ValueError, match=name):
        push(folder, REPO, api=api)
    assert not hub.repos


def test_shards_must_be_complete(hub, api, folder):
    (folder / "model.safetensors").rename(folder / "model-1.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "model-2.safetensors"}}))
    with pytest.raises(ValueError, match=r"model-2\.safetensors"):
        push(folder, REPO, api=api)


def test_changed_code_must_be_allowed(hub, api, folder):
    code = folder / "knowledge_table.py"
    code.write_text(code.read_text() + "# mine\n")
    with pytest.raises(ValueError, match=r"knowledge_table\.py"):
        push(folder, REPO, api=api)
    push(folder, REPO, allow_changed_code=True, api=api)
    assert pushed(hub)["knowledge_table.py"].endswith(b"# mine\n")


def run_command(hub: Hub, home: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
    surroundings = {name: value for name, value in os.environ.items() if name != "HF_HUB_OFFLINE"}
    settings = {"HF_ENDPOINT": hub.url, "HF_HOME": str(home), "HF_HUB_DISABLE_XET": "1", "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-m", "hf_storyend.cli.main", *arguments],
        capture_output=True,
        text=True,
        env={**surroundings, **settings, "HF_TOKEN": MY_TOKEN, "HF_DEBUG": "1", **environment},
    )


def test_the_command(hub, folder, tmp_path):
    result = run_command(hub, tmp_path / "home", "push", str(folder), "--repo_id", REPO, "--private")
    assert result.returncode == 0, result.stderr
    assert "new      model.safetensors" in result.stdout and f"{REPO}/commit/" in result.stdout
    assert MY_TOKEN not in result.stdout + result.stderr
    assert hub.repos[REPO].private


def test_the_command_offline(hub, folder, tmp_path):
    result = run_command(hub, tmp_path, "push", str(folder), "--repo_id", REPO, HF_HUB_OFFLINE="1")
    assert result.returncode == 2 and "HF_HUB_OFFLINE" in result.stderr
    assert "Traceback" not in result.stderr
