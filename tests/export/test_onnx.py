"""`storyend export --format onnx`: the files give what the model gives, whatever the sizes of a batch."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from small_model import small_model

from hf_storyend import load
from hf_storyend.data import load_stories
from hf_storyend.export import ExportOptions, OnnxGenerator, export
from hf_storyend.systems import SYSTEMS

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

STORIES = [
    "Anna put a cake in the oven. Then Anna and Zork watched a long film. The kitchen was full of smoke.",
    "Tom opened the window. They burn cakes.",
    "They didn't hear the timer! Tom asked. We saw mice in the kitchen. Anna and Tom burn cakes.",
]


def saved(system, tokenizer, folder):
    model = small_model(system, tokenizer)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model


def greedy(model, tokenizer, stories, **settings):
    ids = model.generate(**tokenizer(stories, return_tensors="pt"), num_beams=1, do_sample=False, **settings)
    return tokenizer.batch_decode(ids, skip_special_tokens=True, context=stories)


@pytest.mark.slow
@pytest.mark.parametrize("system", [name for name in SYSTEMS if name.startswith("ie")])
def test_every_incremental_system_gives_the_same_words(system, tokenizer, tmp_path):
    model = saved(system, tokenizer, tmp_path / "model")
    export(ExportOptions(output_dir=str(tmp_path / "onnx"), model=str(tmp_path / "model")))
    generator = OnnxGenerator(tmp_path / "onnx")
    # Batches of one, two and three stories with one to four sentences.
    for stories in (STORIES, STORIES[1:], STORIES[:1], ["Tom asked."]):
        assert generator.generate(stories, max_new_tokens=8) == greedy(model, tokenizer, stories, max_new_tokens=8)


@pytest.mark.slow
def test_the_default_model_gives_the_same_words_for_200_stories(tmp_path):
    written = export(ExportOptions(output_dir=str(tmp_path)))
    assert [path.name for path in written] == ["encoder.onnx", "decoder_step.onnx"]
    model, tokenizer = load()
    rows = load_stories("embedded")["train"].select(range(200))
    stories = [" ".join(context) for context in rows["context"]]
    generator = OnnxGenerator(tmp_path)
    for start in range(0, len(stories), 20):
        chunk = stories[start : start + 20]
        assert generator.generate(chunk) == greedy(model, tokenizer, chunk)


@pytest.mark.slow
def test_int8_is_smaller_and_close(tokenizer, tmp_path):
    model = saved("ie-copy-tails", tokenizer, tmp_path / "model")
    sizes = {}
    for int8 in (False, True):
        folder = tmp_path / f"int8_{int8}"
        written = export(ExportOptions(output_dir=str(folder), model=str(tmp_path / "model"), int8=int8))
        sizes[int8] = sum(path.stat().st_size for path in written)
    endings = OnnxGenerator(folder).generate(STORIES, max_new_tokens=1)
    assert sizes[True] < sizes[False]
    assert len(endings) == len(greedy(model, tokenizer, STORIES)) == 3


@pytest.mark.slow
def test_generation_needs_no_torch(tokenizer, tmp_path):
    model = saved("ie-copy", tokenizer, tmp_path / "model")
    export(ExportOptions(output_dir=str(tmp_path / "onnx"), model=str(tmp_path / "model")))
    batch = tokenizer(STORIES, return_tensors="np")
    np.savez(tmp_path / "batch.npz", **batch)
    code = (
        "import sys, numpy as np; from hf_storyend.export import OnnxGenerator\n"
        f"ids = OnnxGenerator({str(tmp_path / 'onnx')!r}).generate_ids(np.load({str(tmp_path / 'batch.npz')!r}), 5)\n"
        "assert 'torch' not in sys.modules; print(ids.tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    expected = model.generate(**tokenizer(STORIES, return_tensors="pt"), max_new_tokens=5)
    assert torch.equal(torch.tensor(eval(done.stdout)), expected)


def test_other_systems_and_missing_files_are_refused(tokenizer, tmp_path):
    saved("hlstm", tokenizer, tmp_path / "model")
    with pytest.raises(ValueError, match="only models with incremental encoding can be exported"):
        export(ExportOptions(output_dir=str(tmp_path / "onnx"), model=str(tmp_path / "model")))
    with pytest.raises(ValueError, match=r"has no encoder\.onnx: `storyend export"):
        OnnxGenerator(tmp_path)
