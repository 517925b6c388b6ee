"""The plain loop that the benchmarks compare with computes what the model computes: else its times mean nothing."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pytest
import torch

sys.path.append(str(Path(__file__).parent.parent / "benchmarks"))

from bench_data import context_of, make_batches, make_models, read_stories  # noqa: E402
from generation import EndsAt  # noqa: E402

SMALL = argparse.Namespace(hidden=12, embedding=8, vocab=300, stories=None, triples=None)


@pytest.fixture(scope="module")
def stories():
    return read_stories(SMALL)


@pytest.mark.parametrize("knowledge", ["ga", "ca", "ie"])
def test_same_loss_and_same_endings(stories, knowledge):
    tokenizer, texts = stories
    ours, plain_loop = make_models(SMALL, tokenizer, knowledge)
    ours, plain_loop = ours.double().eval(), plain_loop.double().eval()
    batch = make_batches(tokenizer, texts, 6, 1)[0]
    torch.testing.assert_close(plain_loop(**batch), ours(**batch).loss, rtol=1e-9, atol=1e-9)
    for model in (ours, plain_loop):
        model.lm_head.bias.data[ours.config.eos_token_id] = -1e4  # neither ends early
    batch = context_of(batch)
    for num_beams in (1, 3):
        endings = ours.generate(**batch, num_beams=num_beams, max_new_tokens=5)[:, 1:]
        assert plain_loop.generate(torch.full((6,), 5), num_beams, **batch).equal(endings)
        lengths = torch.tensor([3, 1, 5, 2, 4, 2])
        ends = EndsAt(lengths.repeat_interleave(num_beams), ours.config.eos_token_id)
        endings = ours.generate(**batch, num_beams=num_beams, max_new_tokens=6, logits_processor=[ends])[:, 1:-1]
        is_word = torch.arange(5) < lengths.unsqueeze(1)
        assert plain_loop.generate(lengths, num_beams, **batch)[is_word].equal(endings[is_word])
