"""Saving and loading: files, dtypes, devices, other vocabularies, and checkpoints of version 0.1."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from story_cases import as_tensors, batch_for, context_of, random_stories, tiny_config, tiny_model, tiny_system
from transformers import AutoConfig, AutoModel, AutoModelForSeq2SeqLM

from hf_storyend import IncrementalEncoderConfig, IncrementalEncoderForEndingGeneration
from hf_storyend.systems import SYSTEMS

# Saved by version 0.1, with inputs, logits, loss and generated endings.
CHECKPOINTS = sorted((Path(__file__).parent / "checkpoints_0_1").iterdir())


@pytest.mark.parametrize("name", SYSTEMS)
def test_saved_and_loaded_it_is_the_same(name, tmp_path):
    model, batch = tiny_system(name, torch.float32), batch_for(name, 0)
    model.generation_config.num_beams = 3
    model.save_pretrained(tmp_path)
    assert load_file(tmp_path / "model.safetensors").keys() == model.state_dict().keys()
    for auto_class in (AutoModel, AutoModelForSeq2SeqLM, IncrementalEncoderForEndingGeneration):
        loaded = auto_class.from_pretrained(tmp_path)
        assert type(loaded) is IncrementalEncoderForEndingGeneration
        assert loaded.config.to_diff_dict() == model.config.to_diff_dict()
        assert loaded.generation_config.num_beams == 3
        assert all(torch.equal(weight, model.state_dict()[name]) for name, weight in loaded.state_dict().items())
        # Weights in a mapped file lie at other addresses, for which a product may be summed in another order.
        torch.testing.assert_close(loaded(**batch).logits, model(**batch).logits, rtol=1e-5, atol=1e-6)
    assert type(AutoConfig.from_pretrained(tmp_path)) is IncrementalEncoderConfig


def test_a_missing_weight_is_initialised(tmp_path):
    """As when a system gains a part that the checkpoint does not have: no uninitialised memory."""
    tiny_model(torch.float32, knowledge=None).save_pretrained(tmp_path)
    config = tiny_config(knowledge="contextual_attention")
    loaded = IncrementalEncoderForEndingGeneration.from_pretrained(
        tmp_path, config=config, ignore_mismatched_sizes=True
    )
    assert all(parameter.isfinite().all() and parameter.abs().max() < 10 for parameter in loaded.parameters())
    assert loaded.encoder.knowledge.forward_reader.weight_ih.std() > 0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_kept(dtype, tmp_path):
    tiny_model(torch.float32).to(dtype).save_pretrained(tmp_path)
    loaded = AutoModel.from_pretrained(tmp_path)
    assert loaded.dtype == dtype
    assert AutoModel.from_pretrained(tmp_path, dtype=torch.float32).dtype == torch.float32
    words = loaded.generate(**context_of(as_tensors(random_stories(0))), num_beams=2, max_new_tokens=4)
    assert words.shape[0] == 3


@pytest.mark.parametrize("device_map", ["auto", "cpu", {"": "cpu"}, {"encoder": "cpu", "lm_head": "cpu"}])
def test_device_map(device_map, tmp_path):
    model, batch = tiny_model(torch.float32), as_tensors(random_stories(0))
    model.save_pretrained(tmp_path)
    loaded = AutoModel.from_pretrained(tmp_path, device_map=device_map)
    torch.testing.assert_close(loaded(**batch).logits, model(**batch).logits, rtol=1e-5, atol=1e-6)
    expected = model.generate(**context_of(batch), max_new_tokens=5)
    assert torch.equal(loaded.generate(**context_of(batch), max_new_tokens=5), expected)


def test_meta_device():
    with torch.device("meta"):
        model = IncrementalEncoderForEndingGeneration(IncrementalEncoderConfig())
    assert all(parameter.is_meta for parameter in model.parameters())
    batch = {name: tensor.to("meta") for name, tensor in as_tensors(random_stories(0)).items()}
    assert model(**context_of(batch), decoder_input_ids=batch["labels"]).logits.shape[-1] == 10_000


def test_resizing_the_vocabulary():
    model, batch = tiny_model(torch.float32), as_tensors(random_stories(0))
    before = model(**batch).logits
    model.resize_token_embeddings(30)
    assert model.config.vocab_size == 30
    assert model.get_input_embeddings().num_embeddings == model.get_output_embeddings().out_features == 30
    after = model(**batch).logits
    torch.testing.assert_close(after[..., : before.shape[-1]], before)
    batch["input_ids"][0, 0, 0] = 29
    model(**batch)


def test_tied_word_vectors(tmp_path):
    model = tiny_model(torch.float32, embedding_size=7, tie_word_embeddings=True)
    assert model.lm_head.weight is model.encoder.embed_tokens.weight
    model.save_pretrained(tmp_path)
    loaded = AutoModel.from_pretrained(tmp_path)
    assert loaded.lm_head.weight is loaded.encoder.embed_tokens.weight
    assert torch.equal(loaded.lm_head.weight, model.lm_head.weight)
    assert tiny_model(embedding_size=7).lm_head.weight is not tiny_model(embedding_size=7).encoder.embed_tokens.weight


def test_the_saved_configuration_names_the_code(tmp_path, model):
    model.save_pretrained(tmp_path)
    saved = json.loads((tmp_path / "config.json").read_text())
    assert saved["auto_map"] == {
        "AutoConfig": "configuration_incremental_encoder.IncrementalEncoderConfig",
        "AutoModel": "modeling_incremental_encoder.IncrementalEncoderForEndingGeneration",
        "AutoModelForSeq2SeqLM": "modeling_incremental_encoder.IncrementalEncoderForEndingGeneration",
    }


@pytest.mark.parametrize("path", CHECKPOINTS, ids=lambda path: path.name)
def test_checkpoints_of_version_0_1_give_the_same_results(path):
    model, information = IncrementalEncoderForEndingGeneration.from_pretrained(path, output_loading_info=True)
    assert not information["missing_keys"] and not information["unexpected_keys"]
    expected = load_file(path / "expected.safetensors")
    logits, loss, ending = (expected.pop(name) for name in ("logits", "loss", "ending"))
    output = model.eval()(**expected)
    # The slots of no word were at minus infinity then.
    possible = logits > -torch.inf
    torch.testing.assert_close(output.logits[possible], logits[possible], rtol=1e-5, atol=1e-6)
    assert (output.logits.softmax(dim=-1)[~possible] < 1e-15).all()
    torch.testing.assert_close(output.loss, loss[0], rtol=1e-5, atol=1e-6)
    assert torch.equal(model.generate(**context_of(expected), num_beams=2, max_new_tokens=6), ending)


def test_the_configuration_of_version_0_1(tmp_path):
    (path,) = [path for path in CHECKPOINTS if path.name == "ie-msa-ca-copy"]
    saved = json.loads((path / "config.json").read_text())
    config = AutoConfig.from_pretrained(path)
    assert config.encoder_loss_sampling_ratio == saved["encoder_loss_share"] == 0.5
    assert config.num_sampled_classes == saved["num_negatives"] == 9
    assert config.library_versions == saved["made_with"]
    assert (config.prediction_vector, config.recurrence_implementation) == ("state", "fused")
    AutoModel.from_pretrained(path).save_pretrained(tmp_path)
    again = json.loads((tmp_path / "config.json").read_text())
    assert again["encoder_loss_sampling_ratio"] == 0.5 and again["num_sampled_classes"] == 9
    assert again["library_versions"]["torch"] == torch.__version__
    assert not {"encoder_loss_share", "num_negatives", "made_with"} & again.keys()


def test_gradient_checkpointing_is_refused():
    """The fused recurrence keeps what backward needs; there is nothing to trade."""
    with pytest.raises(ValueError, match="Gradient checkpointing is not supported"):
        tiny_model().gradient_checkpointing_enable()
