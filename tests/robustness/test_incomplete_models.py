"""A model whose file lacks a weight is refused, and no file of pickled weights is ever opened."""

import json
import pickle
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from story_cases import tiny_model
from transformers import AutoModel

import hf_storyend
from hf_storyend import IncrementalEncoderForEndingGeneration
from hf_storyend.systems import SYSTEMS

hf_storyend.register()


class Deadly:
    """Unpickled, it leaves a trace."""

    def __init__(self, trace: Path):
        self.trace = trace

    def __reduce__(self):
        return Path.touch, (self.trace,)


@pytest.fixture
def opened(monkeypatch) -> list[str]:
    """Files that torch.load was called with."""
    files: list[str] = []
    monkeypatch.setattr(torch, "load", lambda file, *args, **kwargs: files.append(str(file)))
    return files


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_single_weight_is_needed(system, tmp_path):
    tiny_model(torch.float32, **SYSTEMS[system].settings).save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    for name in tensors:
        save_file({key: tensor for key, tensor in tensors.items() if key != name}, tmp_path / "model.safetensors")
        with pytest.raises(ValueError, match=f"lack {name}: the file is incomplete"):
            AutoModel.from_pretrained(tmp_path)


def test_tied_weights_need_not_be_there_twice(tmp_path):
    tiny_model(torch.float32, embedding_size=7, tie_word_embeddings=True).save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    tensors.pop("lm_head.weight", None)
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    AutoModel.from_pretrained(tmp_path)


def write_index(folder: Path, trace: Path) -> None:
    """Weights as an index of one pickled shard."""
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    (folder / "shard.bin").write_bytes(pickle.dumps(Deadly(trace)))
    index = {"metadata": {"total_size": 1}, "weight_map": dict.fromkeys(tensors, "shard.bin")}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


@pytest.mark.parametrize("subfolder", ["", "best"])
def test_an_index_of_pickled_files(model, tmp_path, opened, subfolder):
    model.save_pretrained(tmp_path / "model" / subfolder)
    write_index(tmp_path / "model" / subfolder, tmp_path / "trace")
    with pytest.raises(ValueError, match="pickled weights are never read"):
        AutoModel.from_pretrained(tmp_path / "model", subfolder=subfolder)
    assert not opened and not (tmp_path / "trace").exists()


def test_a_variant_with_an_index_of_pickled_files(model, tmp_path, opened):
    model.save_pretrained(tmp_path)
    write_index(tmp_path, tmp_path / "trace")
    (tmp_path / "model.safetensors.index.json").rename(tmp_path / "model.safetensors.index.fp16.json")
    with pytest.raises(ValueError, match="pickled weights are never read"):
        AutoModel.from_pretrained(tmp_path, variant="fp16")
    assert not opened


def test_a_pickled_file_by_its_name(model, tmp_path, opened):
    (tmp_path / "weights.bin").write_bytes(pickle.dumps(Deadly(tmp_path / "trace")))
    with pytest.raises(ValueError, match="pickled weights are never read"):
        IncrementalEncoderForEndingGeneration.from_pretrained(tmp_path / "weights.bin", config=model.config)
    assert not opened


def test_an_adapter_in_place_of_a_model(model, tmp_path, opened, monkeypatch):
    """With PEFT, transformers loads the model that it names."""
    for module in ("hf_storyend.modeling.loading", "transformers.integrations.peft"):
        monkeypatch.setattr(f"{module}.is_peft_available", lambda: True)
    model.save_pretrained(tmp_path / "model")
    write_index(tmp_path / "model", tmp_path / "trace")
    (tmp_path / "adapter").mkdir()
    (tmp_path / "adapter" / "adapter_config.json").write_text(
        json.dumps({"base_model_name_or_path": str(tmp_path / "model")})
    )
    with pytest.raises(ValueError, match=r"adapter_config\.json is of an adapter"):
        IncrementalEncoderForEndingGeneration.from_pretrained(tmp_path / "adapter")
    assert not opened
