"""Extreme scores, long and empty rows: finite values and gradients, and the same on every run."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from story_cases import as_tensors, batch_for, context_of, random_stories, tiny_system


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", ["ie-msa-ca", "ie-msa-ga-copy", "hlstm-msa-ga", "seq2seq"])
@pytest.mark.parametrize("scale", [1e3, 1e6])
def test_gradients_are_finite_at_extreme_scores(name, dtype, scale):
    model = tiny_system(name, dtype).train()
    with torch.no_grad():
        model.lm_head.weight.mul_(scale)
    loss = model(**batch_for(name, seed=4)).loss
    assert loss.isfinite()
    loss.backward()
    for parameter_name, parameter in model.named_parameters():
        assert parameter.grad is None or parameter.grad.isfinite().all(), parameter_name


@pytest.mark.parametrize("name", ["ie-msa-ca", "hlstm-msa-ca", "seq2seq"])
def test_words_that_shout(name):
    """Word vectors a thousand times too long saturate gates and attention, and stay numbers."""
    model = tiny_system(name, torch.float32).train()
    with torch.no_grad():
        model.get_input_embeddings().weight.mul_(1e3)
    loss = model(**batch_for(name, seed=5)).loss
    loss.backward()
    assert loss.isfinite()
    assert all(weight.grad is None or weight.grad.isfinite().all() for weight in model.parameters())


@pytest.mark.parametrize("name", ["ie-msa-ca", "hlstm-msa-ca"])
def test_sentences_of_hundreds_of_words(name):
    batch = as_tensors(random_stories(1, num_stories=1, max_sentences=2, max_words=4))
    words = torch.randint(4, 20, (1, 2, 600), generator=torch.Generator().manual_seed(0))
    model = tiny_system(name, torch.float32).train()
    output = model(input_ids=words, labels=batch["labels"])
    output.loss.backward()
    assert output.loss.isfinite()
    assert all(weight.grad is None or weight.grad.isfinite().all() for weight in model.parameters())


@pytest.mark.parametrize("name", ["ie-msa-ca", "ie-msa-ga", "hlstm", "seq2seq"])
def test_rows_of_padding_alone(name):
    """A sentence of padding is passed over; a whole story of it is an error that names the row."""
    model = tiny_system(name, torch.float32)
    stories = random_stories(2, num_stories=2)
    steps = torch.tensor([[2, 5, 6], [2, 7, 8]])
    expected = model(**context_of(as_tensors(stories)), decoder_input_ids=steps).logits
    batch = context_of(as_tensors(stories, extra_sentences=3))
    logits = model(**batch, decoder_input_ids=steps).logits
    assert logits.isfinite().all()
    torch.testing.assert_close(logits, expected)
    batch["attention_mask"][1] = 0
    with pytest.raises(ValueError, match="Story 2 of the batch is empty"):
        model(**batch, decoder_input_ids=steps)


FRESH = """
import json, sys, torch
from story_cases import as_tensors, context_of, random_stories, tiny_system
torch.set_num_threads(1)
model = tiny_system("ie-msa-ca", torch.float32)
batch = context_of(as_tensors(random_stories(6)))
torch.manual_seed(5)
sampled = model.generate(**batch, do_sample=True, max_new_tokens=8).tolist()
print(json.dumps([sampled, model.generate(**batch, num_beams=4, max_new_tokens=8).tolist()]))
"""


def test_the_same_seed_writes_the_same_in_a_fresh_process():
    """Also where Python's hashes, and with them the order of sets, are others."""
    command = [sys.executable, "-c", FRESH]
    tests = str(Path(__file__).resolve().parent.parent)
    environment = {**os.environ, "PYTHONHASHSEED": "4321", "PYTHONPATH": tests, "OMP_NUM_THREADS": "1"}
    fresh = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    model = tiny_system("ie-msa-ca", torch.float32)
    batch = context_of(as_tensors(random_stories(6)))
    for _ in range(2):
        torch.manual_seed(5)
        sampled = model.generate(**batch, do_sample=True, max_new_tokens=8).tolist()
        beams = model.generate(**batch, num_beams=4, max_new_tokens=8).tolist()
        assert [sampled, beams] == json.loads(fresh.stdout.splitlines()[-1])
