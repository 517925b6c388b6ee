"""Pushed by one process, loaded by another that has a clean cache and no package."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hub.hub_server import MY_TOKEN, Blob, Hub
from huggingface_hub import constants
from remote_code import WITHOUT_PACKAGE

from hf_storyend import IncrementalEncoderForEndingGeneration
from hf_storyend.hub import check_code, push
from hf_storyend.hub.verify_code import installed_code

REPO = "me/ie-msa-ca"
STORY = "Anna put a cake in the oven. They watched a long film."

ARGUMENTS = """
from transformers import pipeline
repo, story, *revisions = sys.argv[1:]
"""
LOAD = """
from huggingface_hub import ModelCard
results = []
for revision in revisions:
    settings = {"revision": revision, "trust_remote_code": True}
    model = AutoModel.from_pretrained(repo, **settings)
    tokenizer = AutoTokenizer.from_pretrained(repo, **settings)
    ids = model.generate(**tokenizer(story, return_tensors="pt"))
    write = pipeline(model=repo, **settings)
    # The snippet that the Hub shows for a card's `pipeline_tag`.
    by_tag = pipeline(ModelCard.load(repo).data.pipeline_tag, model=repo, **settings)
    assert type(by_tag).__name__ == "StoryEndingPipeline" and by_tag(story) == write(story)
    results.append({"ids": ids.tolist(), "library_versions": model.config.library_versions, "pipeline": write(story)})
print(json.dumps(results))
"""
PUSH_BY_MIXIN = """
import sys, hf_storyend
from transformers import AutoModel, AutoTokenizer
folder, repo = sys.argv[1:]
hf_storyend.register()
AutoModel.from_pretrained(folder).push_to_hub(repo)
AutoTokenizer.from_pretrained(folder).push_to_hub(repo)
"""


def run(hub: Hub, home: Path, code: str, *arguments: str) -> subprocess.CompletedProcess:
    # Isolated (-I): neither the working directory nor PYTHONPATH can bring the package back.
    surroundings = {name: value for name, value in os.environ.items() if name != "HF_HUB_OFFLINE"}
    settings = {
        "HF_ENDPOINT": hub.url,
        "HF_HOME": str(home),
        "HF_TOKEN": MY_TOKEN,
        "HF_HUB_DISABLE_XET": "1",
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, "-I", "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={**surroundings, **settings})


def test_loaded_without_the_package_at_the_head_and_at_a_pinned_revision(hub, api, folder, model, tokenizer, tmp_path):
    first = push(folder, REPO, private=True, api=api).commit_url.rsplit("/", 1)[1]
    expected = [model.generate(**tokenizer(STORY, return_tensors="pt"), max_new_tokens=n).tolist() for n in (30, 4)]
    model.generation_config.update(max_new_tokens=4, num_beams=1)
    model.save_pretrained(folder)
    push(folder, REPO, api=api)
    result = run(hub, tmp_path / "clean", WITHOUT_PACKAGE + ARGUMENTS + LOAD, REPO, STORY, first, "main")
    assert result.returncode == 0, result.stderr
    pinned, head = json.loads(result.stdout.splitlines()[-1])
    assert [pinned["ids"], head["ids"]] == expected
    assert head["library_versions"].keys() >= {"hf_storyend", "transformers"}
    assert head["pipeline"][0]["ending"] == tokenizer.decode(expected[1][0], skip_special_tokens=True, context=STORY)
    assert check_code(REPO, api=api).is_identical


def test_push_to_hub_of_model_and_tokenizer(hub, folder, tmp_path):
    result = run(hub, tmp_path / "home", PUSH_BY_MIXIN, str(folder), REPO)
    assert result.returncode == 0, result.stderr
    files = hub.repos[REPO].files()
    needed = {"config.json", "generation_config.json", "model.safetensors", "tokenizer_config.json"}
    needed |= {"vocab.json", "knowledge.json", "word_forms.json"}
    assert needed <= files.keys()
    assert all(files[name] == path.read_bytes() for name, path in installed_code().items())


@pytest.fixture
def files_of_pickled_model(hub, model, tmp_path, monkeypatch) -> dict[str, Blob]:
    """A model whose index names a pickled file; transformers asks the Hub of the tests."""
    monkeypatch.setattr(constants, "ENDPOINT", hub.url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", hub.url + "/{repo_id}/resolve/{revision}/{filename}")
    model.save_pretrained(tmp_path)
    index = {"metadata": {"total_size": 1}, "weight_map": dict.fromkeys(model.state_dict(), "shard.bin")}
    return {
        "config.json": Blob((tmp_path / "config.json").read_bytes()),
        "model.safetensors.index.json": Blob(json.dumps(index).encode()),
        "shard.bin": Blob(b"pickled"),
    }


def test_an_adapter_that_leads_to_pickled_files_is_refused(hub, api, files_of_pickled_model, monkeypatch):
    """With PEFT, transformers loads the model that an adapter on the Hub is for."""
    for module in ("hf_storyend.modeling.loading", "transformers.integrations.peft"):
        monkeypatch.setattr(f"{module}.is_peft_available", lambda: True)
    adapter = Blob(json.dumps({"base_model_name_or_path": "me/other"}).encode())
    for name, files in {"me/other": files_of_pickled_model, REPO: {"adapter_config.json": adapter}}.items():
        api.create_repo(name)
        hub.repos[name].commit("main", {"config.json": files_of_pickled_model["config.json"], **files})
    with pytest.raises(ValueError, match=r"adapter_config\.json is of an adapter: load the model that it is for"):
        IncrementalEncoderForEndingGeneration.from_pretrained(REPO)
    assert hub.count(r"adapter_config\.json") and not hub.count(r"shard\.bin")


@pytest.mark.parametrize("subfolder", ["", "best"])
def test_an_index_of_pickled_files_is_refused(hub, api, files_of_pickled_model, subfolder):
    """Before the files that it names are downloaded."""
    files = files_of_pickled_model
    api.create_repo(REPO)
    hub.repos[REPO].commit("main", {str(Path(subfolder) / name): blob for name, blob in files.items()})
    with pytest.raises(ValueError, match="pickled weights are never read"):
        IncrementalEncoderForEndingGeneration.from_pretrained(REPO, subfolder=subfolder)
    assert hub.count(r"model\.safetensors\.index\.json") and not hub.count(r"shard\.bin")
