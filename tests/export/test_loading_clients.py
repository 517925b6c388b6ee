"""Loading as generic code does it: shards, disk offload, quantisation, and adapters of PEFT."""

import importlib.util
import logging
import subprocess
import sys

import pytest
import torch
from small_model import small_model

import hf_storyend
from hf_storyend import IncrementalEncoderForEndingGeneration

STORIES = [
    "Anna put a cake in the oven. Then Anna and Zork watched a film.",
    "Tom opened the window. They burn cakes.",
]
SYSTEM, SIZES = "ie-msa-ga-copy", {"embedding_size": 64, "hidden_size": 128}


@pytest.fixture
def saved(tokenizer, tmp_path):
    model = small_model(SYSTEM, tokenizer, **SIZES)
    model.save_pretrained(tmp_path / "model")
    return model, tmp_path / "model"


def endings(model, tokenizer):
    return model.generate(**tokenizer(STORIES, return_tensors="pt"), num_beams=1, max_new_tokens=6)


def test_shards(saved, tokenizer, tmp_path):
    model, _ = saved
    model.save_pretrained(tmp_path / "shards", max_shard_size="100KB")
    assert len(list((tmp_path / "shards").glob("*.safetensors"))) > 2
    loaded = IncrementalEncoderForEndingGeneration.from_pretrained(tmp_path / "shards")
    assert torch.equal(endings(loaded, tokenizer), endings(model, tokenizer))


@pytest.mark.parametrize("device_map", [{"": "disk"}, {"encoder": "disk", "lm_head": "cpu", "dropout": "cpu"}])
def test_disk_offload(saved, tokenizer, tmp_path, device_map):
    model, folder = saved
    loaded = IncrementalEncoderForEndingGeneration.from_pretrained(
        folder, device_map=device_map, offload_folder=tmp_path / "offload"
    )
    assert "meta" in {parameter.device.type for parameter in loaded.parameters()}
    assert torch.equal(endings(loaded, tokenizer), endings(model, tokenizer))


def test_errors_of_the_meta_device_keep_their_type(saved):
    _, folder = saved
    with torch.device("meta"), pytest.raises(RuntimeError, match="meta device context manager"):
        IncrementalEncoderForEndingGeneration.from_pretrained(folder)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["Int8WeightOnlyConfig", "Int8DynamicActivationInt8WeightConfig", "int4"])
def test_torchao(saved, tokenizer, tmp_path, kind):
    quantization = pytest.importorskip("torchao.quantization")
    from transformers import TorchAoConfig

    model, folder = saved
    if kind == "int4":
        config = quantization.IntxWeightOnlyConfig(
            weight_dtype=torch.int4, granularity=quantization.granularity.PerGroup(32)
        )
    else:
        config = getattr(quantization, kind)()
    loaded = IncrementalEncoderForEndingGeneration.from_pretrained(folder, quantization_config=TorchAoConfig(config))
    assert type(loaded.encoder.lstm.step_gates[0].weight) is not torch.nn.Parameter
    written = endings(loaded, tokenizer)
    if kind != "int4":
        assert torch.equal(written, endings(model, tokenizer))
    loaded.save_pretrained(tmp_path / "quantized")
    again = IncrementalEncoderForEndingGeneration.from_pretrained(tmp_path / "quantized")
    assert torch.equal(endings(again, tokenizer), written)


@pytest.mark.slow
@pytest.mark.parametrize("bits", [8, 4])
def test_bitsandbytes(saved, tokenizer, bits):
    pytest.importorskip("bitsandbytes")
    from transformers import BitsAndBytesConfig

    model, folder = saved
    config = BitsAndBytesConfig(**{f"load_in_{bits}bit": True})
    loaded = IncrementalEncoderForEndingGeneration.from_pretrained(folder, quantization_config=config)
    assert "bitsandbytes" in type(loaded.encoder.attention.state_scorer).__module__
    assert endings(loaded, tokenizer).shape[0] == endings(model, tokenizer).shape[0]


@pytest.mark.slow
def test_quanto(saved, tokenizer):
    pytest.importorskip("optimum.quanto")
    from transformers import QuantoConfig

    model, folder = saved
    config = QuantoConfig(weights="int8")
    loaded = IncrementalEncoderForEndingGeneration.from_pretrained(folder, quantization_config=config)
    assert type(loaded.encoder.lstm.step_gates[0]).__name__ == "QLinear"
    assert torch.equal(endings(loaded, tokenizer), endings(model, tokenizer))


@pytest.mark.slow
@pytest.mark.parametrize("task", [None, "SEQ_2_SEQ_LM"])
def test_lora_knows_its_target_modules_and_merged_adapter_and_reloaded_agree(saved, tokenizer, tmp_path, task):
    peft = pytest.importorskip("peft")
    _, folder = saved

    def base():
        return IncrementalEncoderForEndingGeneration.from_pretrained(folder)

    batch = {**tokenizer(STORIES, return_tensors="pt"), "labels": torch.tensor([[5, 6, 3], [7, 8, 3]])}
    # Without this, an adapter starts as zero.
    adapted = peft.get_peft_model(base(), peft.LoraConfig(r=4, init_lora_weights=False, task_type=task)).eval()
    names = {name for name, _ in adapted.named_modules() if name.endswith(".lora_A")}
    assert {name.split(".")[-2] for name in names} == {"word_gates", "0", "1", "merge", "attentional"}
    adapted.save_pretrained(tmp_path / "adapter")
    with torch.no_grad():
        expected, written = adapted(**batch).loss, endings(adapted, tokenizer)
        assert not torch.allclose(expected, base()(**batch).loss, rtol=1e-3)
        reloaded = peft.PeftModel.from_pretrained(base(), tmp_path / "adapter").eval()
        torch.testing.assert_close(reloaded(**batch).loss, expected)
        if task is not None:
            found = peft.AutoPeftModelForSeq2SeqLM.from_pretrained(tmp_path / "adapter").eval()
            torch.testing.assert_close(found(**batch).loss, expected)
        merged = adapted.merge_and_unload()
        torch.testing.assert_close(merged(**batch).loss, expected)
        merged.save_pretrained(tmp_path / "merged")
        again = IncrementalEncoderForEndingGeneration.from_pretrained(tmp_path / "merged")
        torch.testing.assert_close(again(**batch).loss, expected)
    assert torch.equal(endings(again, tokenizer), written)


IMPORTS = {
    "before the package": "import peft, hf_storyend; model, _ = hf_storyend.load(sys.argv[1])",
    "after the package": (
        "import hf_storyend; hf_storyend.register(); import peft; model, _ = hf_storyend.load(sys.argv[1])"
    ),
    "after the model": "import hf_storyend; model, _ = hf_storyend.load(sys.argv[1]); import peft",
    "by transformers": (
        "import hf_storyend, transformers; hf_storyend.register(); "
        "model = transformers.AutoModelForSeq2SeqLM.from_pretrained(sys.argv[1]); import peft"
    ),
}


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("peft") is None, reason="no PEFT here: pip install peft")
@pytest.mark.parametrize("order", IMPORTS)
def test_lora_knows_its_target_modules_whatever_is_imported_first(saved, tokenizer, order):
    _, folder = saved
    tokenizer.save_pretrained(folder)
    code = f"import sys; {IMPORTS[order]}; adapted = peft.get_peft_model(model, peft.LoraConfig(r=2))\n"
    code += "print(sum(type(module).__module__.startswith('peft.tuners.lora') for module in adapted.modules()) > 4)"
    done = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.split()[-1] == "True", done.stderr


@pytest.mark.slow
def test_lm_eval_is_warned_of_what_it_leaves_out(saved, tokenizer, caplog):
    """`generate_until` passes words only, without triples; `loglikelihood` flattens the story as well."""
    models = pytest.importorskip("lm_eval.models.huggingface")
    instances = pytest.importorskip("lm_eval.api.instance")
    hf_storyend.register()
    model, folder = saved
    tokenizer.save_pretrained(folder)
    logging.Logger.warning_once.cache_clear()
    client = models.HFLM(pretrained=str(folder), backend="seq2seq", device="cpu", batch_size=1)

    def requests(kind, *arguments):
        return [instances.Instance(request_type=kind, doc={}, arguments=arguments, idx=0)]

    (written,) = client.generate_until(requests("generate_until", STORIES[0], {"until": ["@"], "max_gen_toks": 6}))
    assert "`triple_ids` is missing" in caplog.text
    words = {name: tokenizer(STORIES[0], return_tensors="pt")[name] for name in ("input_ids", "attention_mask")}
    # It counts the story's sentences as its prompt.
    expected = model.generate(**words, max_length=2 + 6)
    assert written.strip() == tokenizer.decode(expected[0], skip_special_tokens=True)
    assert "are read as stories of one sentence" not in caplog.text
    client.loglikelihood(requests("loglikelihood", STORIES[0], " They burn cakes."))
    assert "are read as stories of one sentence" in caplog.text
