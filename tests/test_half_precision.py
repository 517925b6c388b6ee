"""Models saved in half precision."""

import json

import pytest
import torch
from safetensors.torch import load_file

from hf_storyend import IncrementalEncoderForEndingGeneration, IncrementalEncoderTokenizer
from hf_storyend.half_precision import save_half_precision


@pytest.fixture
def saved(model, tokenizer, tmp_path):
    model.save_pretrained(tmp_path / "whole")
    tokenizer.save_pretrained(tmp_path / "whole")
    return tmp_path / "whole"


def test_weights_are_float16_on_disk_and_float32_in_memory(saved, tmp_path):
    save_half_precision(saved, tmp_path / "half")
    assert {tensor.dtype for tensor in load_file(tmp_path / "half" / "model.safetensors").values()} == {torch.half}
    loaded = IncrementalEncoderForEndingGeneration.from_pretrained(tmp_path / "half")
    whole = IncrementalEncoderForEndingGeneration.from_pretrained(saved)
    for (name, weight), expected in zip(loaded.named_parameters(), whole.parameters(), strict=True):
        assert weight.dtype == torch.float32, name
        torch.testing.assert_close(weight, expected.half().float(), rtol=0, atol=0)


def test_no_remote_code_is_saved_or_referenced(saved, tmp_path):
    save_half_precision(saved, tmp_path / "half")
    assert list(saved.glob("*.py")) and not list((tmp_path / "half").glob("*.py"))
    for name in ("config.json", "tokenizer_config.json"):
        assert "auto_map" in json.loads((saved / name).read_text())
        assert "auto_map" not in json.loads((tmp_path / "half" / name).read_text())
    story = "Anna put a cake in the oven."
    inputs = IncrementalEncoderTokenizer.from_pretrained(tmp_path / "half")(story, return_tensors="pt")
    expected = IncrementalEncoderTokenizer.from_pretrained(saved)(story, return_tensors="pt")
    assert inputs.keys() == expected.keys()
    for name in inputs:
        assert torch.equal(inputs[name], expected[name])


def test_weights_out_of_range_are_refused_by_name(saved, tmp_path):
    model = IncrementalEncoderForEndingGeneration.from_pretrained(saved)
    with torch.no_grad():
        model.lm_head.bias[3] = 1e6
    model.save_pretrained(saved)
    with pytest.raises(ValueError, match=r"`lm_head\.bias` has weights that half precision can't hold"):
        save_half_precision(saved, tmp_path / "half")
    assert not (tmp_path / "half").exists()


def test_other_files_in_the_directory_are_left_alone(saved, tmp_path):
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "mine.py").write_text("mine = 1\n")
    for _ in range(2):
        save_half_precision(saved, tmp_path / "half")
    assert (tmp_path / "half" / "mine.py").read_text() == "mine = 1\n"
    loaded = IncrementalEncoderForEndingGeneration.from_pretrained(tmp_path / "half")
    assert loaded.generation_config.num_beams is None
