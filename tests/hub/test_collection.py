"""All models of a comparison on the Hub: a repository each, and one collection of them."""

import json
import shutil
from pathlib import Path

import pytest
from hub.hub_server import ANNS_TOKEN
from huggingface_hub import HfApi

from hf_storyend.cli.share import push
from hf_storyend.hub import HubError, PushOptions, plan_collection, push_collection

METRICS = {"perplexity": 17.331, "bleu_1": 25.0, "bleu_2": 9.0}
ROWS = ("ie-msa-ca", "ie-msa-ca.seed1")
REPOS = ["me/story-ending-ie-msa-ca", "me/story-ending-ie-msa-ca.seed1"]


@pytest.fixture
def comparison(folder, tmp_path) -> Path:
    """A comparison with two finished rows, and the run of one that has just begun."""
    root = tmp_path / "compared"
    for name in ROWS:
        shutil.copytree(folder, root / "systems" / name)
    (root / "systems" / "ie").mkdir()
    rows = {name: {"title": f"Title of {name}", "metrics": METRICS} for name in ROWS}
    (root / "comparison.json").write_text(json.dumps({"systems": rows, "split": "test"}))
    return root


def test_a_repository_each_and_one_collection(hub, api, comparison):
    done = push_collection(comparison, "me", api=api)
    assert list(hub.repos) == REPOS and all(push.commit_url for push in done.pushes)
    (collection,) = hub.collections.values()
    assert done.address == f"{hub.url}/collections/{collection['slug']}" and not collection["private"]
    assert [item["id"] for item in collection["items"]] == REPOS
    note = collection["items"][1]["note"]["text"]
    assert note == "Title of ie-msa-ca.seed1: perplexity 17.33, BLEU-1 25.00, BLEU-2 9.00 (test)"
    card = hub.repos[REPOS[1]].files()["README.md"].decode()
    assert f'name = "{REPOS[1]}"' in card


def test_a_second_push_adds_what_is_new_and_nothing_else(hub, api, comparison):
    everything = json.loads((comparison / "comparison.json").read_text())
    (comparison / "comparison.json").write_text(
        json.dumps({**everything, "systems": {ROWS[0]: everything["systems"][ROWS[0]]}})
    )
    push_collection(comparison, "me", api=api)
    (comparison / "comparison.json").write_text(json.dumps(everything))
    done = push_collection(comparison, "me", api=api)
    assert [push.commit_url is None for push in done.pushes] == [True, False]
    (collection,) = hub.collections.values()
    assert [item["id"] for item in collection["items"]] == REPOS


def test_a_dry_run_writes_nothing(hub, api, comparison):
    plan = plan_collection(comparison, "me", api=api)
    assert plan.address is None and plan.missing == REPOS and not hub.repos and not hub.collections
    assert [one.repo_id for one in plan.plans] == REPOS and "model.safetensors" in plan.plans[0].new
    push_collection(comparison, "me", api=api)
    again = plan_collection(comparison, "me", api=api)
    assert again.missing == [] and again.address is not None and all(one.is_empty for one in again.plans)


def test_a_passing_error_of_the_collection_is_passed_over(hub, api, comparison):
    hub.fail("POST /api/collections/.*/items", 503, is_done_first=True)
    push_collection(comparison, "me", api=api)
    (collection,) = hub.collections.values()
    assert [item["id"] for item in collection["items"]] == REPOS


def test_one_bad_model_and_nothing_is_pushed(hub, api, comparison):
    (comparison / "systems" / ROWS[1] / "vocab.json").unlink()
    with pytest.raises(ValueError, match=r"vocab\.json"):
        push_collection(comparison, "me", api=api)
    assert not hub.repos and not hub.collections


def test_what_belongs_to_somebody_else_is_refused(hub, comparison):
    with pytest.raises(HubError, match="may not write"):
        push_collection(comparison, "me", api=HfApi(endpoint=hub.url, token=ANNS_TOKEN))
    assert not hub.collections


def test_private_means_all_of_it(hub, api, comparison):
    push_collection(comparison, "me", private=True, api=api)
    assert all(repo.private for repo in hub.repos.values())
    assert all(collection["private"] for collection in hub.collections.values())


def test_what_is_no_comparison_is_refused(api, folder, comparison):
    with pytest.raises(ValueError, match="holds no comparison: `storyend compare"):
        push_collection(folder, "me", api=api)
    (comparison / "comparison.json").write_text('{"systems": {}, "split": "test"}')
    with pytest.raises(ValueError, match="no finished row"):
        plan_collection(comparison, "me", api=api)


def test_either_a_repository_or_a_collection_is_given():
    for given in ({}, {"repo_id": "me/a", "collection": "me"}):
        with pytest.raises(ValueError, match="either `repo_id`"):
            PushOptions("folder", **given)
    with pytest.raises(ValueError, match="`revision` is for one model"):
        PushOptions("folder", collection="me", revision="other")


def test_the_command(hub, api, comparison, monkeypatch, capsys):
    monkeypatch.setattr("hf_storyend.hub.collection.HfApi", lambda: api)
    push(PushOptions(str(comparison), collection="me", dry_run=True))
    assert "would get 2 of these models" in capsys.readouterr().out and not hub.repos
    push(PushOptions(str(comparison), collection="me", json=True))
    printed = json.loads(capsys.readouterr().out)
    assert [model["repo_id"] for model in printed["models"]] == REPOS and "/collections/me/" in printed[
        "collection_url"
    ]
