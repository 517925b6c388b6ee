"""Sharded weights (FSDP 2) are saved, loaded and used unsharded: two processes on the CPU."""

from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.optimizer import AcceleratedOptimizer
from safetensors.torch import load_file, save_file
from torch import distributed
from torch.distributed.fsdp import fully_shard
from training_runs import are_identical, in_processes

from hf_storyend import IncrementalEncoderConfig, IncrementalEncoderForEndingGeneration
from hf_storyend.training.distributed import (
    full_optimizer_state,
    full_weights,
    load_full_optimizer_state,
    load_full_weights,
    unsharded,
)

BATCH = {"input_ids": torch.arange(4, 28).reshape(2, 3, 4), "labels": torch.tensor([[5, 6, 3], [7, 3, -100]])}


def new_model() -> IncrementalEncoderForEndingGeneration:
    torch.manual_seed(0)
    config = IncrementalEncoderConfig(vocab_size=30, embedding_size=4, hidden_size=6, num_layers=2)
    return IncrementalEncoderForEndingGeneration(config)


def two_steps(model, optimizer) -> None:
    for _ in range(2):
        model(**BATCH).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def assert_holds_half(model) -> None:
    """What a rank stores of each weight: half of its rows, rounded up in rank 0 and down in rank 1."""
    full, own = 0, 0
    for weight in model.parameters():
        rows = (len(weight) + 1) // 2 if distributed.get_rank() == 0 else len(weight) // 2
        assert weight.to_local().shape == (rows, *weight.shape[1:])
        full, own = full + weight.numel(), own + weight.to_local().numel()
    assert 0.45 < own / full < 0.55


def train_in_shards(folder: str) -> None:
    """Two steps in shards, saved; a second sharded model loads them, takes two more steps and writes an ending."""
    distributed.init_process_group("gloo")
    accelerator = Accelerator(cpu=True)
    path = Path(folder)
    for name in ("first", "second"):
        model = fully_shard(new_model())
        assert_holds_half(model)
        optimizer = AcceleratedOptimizer(torch.optim.AdamW(model.parameters(), lr=0.01))
        if name == "second":
            load_full_weights(model, load_file(path / "first.model"))
            load_full_optimizer_state(model, optimizer, load_file(path / "first.optimizer"))
        two_steps(model, optimizer)
        weights, state = full_weights(model), full_optimizer_state(model, optimizer)
        with unsharded(model, accelerator) as bare:
            ending = bare.eval().generate(input_ids=BATCH["input_ids"], max_new_tokens=4)
        if distributed.get_rank() == 0:
            save_file({key: tensor.clone() for key, tensor in weights.items()}, path / f"{name}.model")
            save_file({key: tensor.clone() for key, tensor in state.items()}, path / f"{name}.optimizer")
            save_file({"ending": ending}, path / f"{name}.ending")
        distributed.barrier()
    distributed.destroy_process_group()


def test_shards_are_saved_unsharded_and_resume(tmp_path):
    assert in_processes(train_in_shards, 2, str(tmp_path)) == [0, 0]
    Accelerator(cpu=True)
    model = new_model()
    optimizer = AcceleratedOptimizer(torch.optim.AdamW(model.parameters(), lr=0.01))
    for name in ("first", "second"):
        two_steps(model, optimizer)
        saved = load_file(tmp_path / f"{name}.model")
        assert saved.keys() == model.state_dict().keys()
        for key, tensor in model.state_dict().items():
            torch.testing.assert_close(saved[key], tensor, rtol=1e-4, atol=1e-6)
        own = full_optimizer_state(model, optimizer)
        assert load_file(tmp_path / f"{name}.optimizer").keys() == own.keys()
        ending = model.eval().generate(input_ids=BATCH["input_ids"], max_new_tokens=4)
        assert torch.equal(load_file(tmp_path / f"{name}.ending")["ending"], ending)


def test_full_weights_and_states_round_trip():
    Accelerator(cpu=True)
    model, other = new_model(), new_model()
    optimizers = [AcceleratedOptimizer(torch.optim.AdamW(m.parameters(), lr=0.01)) for m in (model, other)]
    two_steps(model, optimizers[0])
    weights = {key: tensor.clone() for key, tensor in full_weights(model).items()}
    state = {key: tensor.clone() for key, tensor in full_optimizer_state(model, optimizers[0]).items()}
    load_full_weights(other, weights)
    load_full_optimizer_state(other, optimizers[1], state)
    for _ in range(2):
        two_steps(model, optimizers[0])
        two_steps(other, optimizers[1])
    assert are_identical(dict(model.state_dict()), dict(other.state_dict()))
