"""A Hub on loopback, a client for it, and a model's directory as a run leaves it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hub.hub_server import MY_TOKEN, Hub, serve_hub
from huggingface_hub import HfApi, constants

CORPUS_SENTENCE = "A sentence of the corpus that must not travel."


@pytest.fixture
def hub(monkeypatch, tmp_path) -> Iterator[Hub]:
    # Large files over plain HTTP, a cache of its own, and no waiting before another attempt.
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    with serve_hub() as hub:
        monkeypatch.setenv("HF_TOKEN", MY_TOKEN)
        yield hub


@pytest.fixture
def api(hub) -> HfApi:
    return HfApi(endpoint=hub.url, token=MY_TOKEN)


@pytest.fixture
def folder(model, tokenizer, tmp_path) -> Path:
    folder = tmp_path / "run"
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    for name in ("validation_endings.jsonl", "train_log.jsonl", "checkpoint-3/model.safetensors", "best/config.json"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(CORPUS_SENTENCE))
    (folder / ".eval_results").mkdir()
    (folder / ".eval_results" / "storyend.yaml").write_text("[]\n")
    return folder
