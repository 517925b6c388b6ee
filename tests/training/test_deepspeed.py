"""DeepSpeed's ZeRO-2 engine trains the model as one process does: two processes on the CPU."""

import importlib.util
import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import distributed
from training_runs import in_processes

from hf_storyend import IncrementalEncoderConfig, IncrementalEncoderForEndingGeneration

# Not imported here: it takes seconds, and prints.
has_deepspeed = importlib.util.find_spec("deepspeed") is not None

STORIES = {"input_ids": torch.arange(4, 28).reshape(2, 3, 4), "labels": torch.tensor([[5, 6, 3], [7, 8, 3]])}
CONFIG = {
    "train_micro_batch_size_per_gpu": 1,
    "zero_optimization": {"stage": 2},
    "zero_allow_untested_optimizer": True,
    "gradient_clipping": 0.0,
}


def model_and_optimizer():
    torch.manual_seed(0)
    config = IncrementalEncoderConfig(vocab_size=30, embedding_size=4, hidden_size=6, num_layers=2)
    model = IncrementalEncoderForEndingGeneration(config)
    return model, torch.optim.AdamW(model.parameters(), lr=0.01)


def train_with_zero_2(folder: str) -> None:
    """Each process reads one story; its part of the optimizer and the weights after three updates are saved."""
    os.environ["DS_ACCELERATOR"] = "cpu"
    import deepspeed

    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    model, optimizer = model_and_optimizer()
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=CONFIG, dist_init_required=False)
    for _ in range(3):
        loss = engine(**{name: tensor[[rank]] for name, tensor in STORIES.items()}).loss
        engine.backward(loss)
        engine.step()
    states = [tensor for state in engine.optimizer.optimizer.state.values() for tensor in state.values()]
    told = {
        "stage": torch.tensor(engine.zero_optimization_stage()),
        "size": torch.tensor(max(tensor.numel() for tensor in states)),
    }
    save_file(told, Path(folder) / f"{rank}.told")
    weights = {name: weight.detach().clone() for name, weight in engine.module.state_dict().items()}
    save_file(weights, Path(folder) / f"{rank}.model")
    distributed.barrier()
    os._exit(0)


@pytest.mark.slow
@pytest.mark.skipif(not has_deepspeed, reason="no DeepSpeed here: pip install deepspeed")
def test_two_processes_of_zero_2_equal_one_and_share_the_optimizer(tmp_path):
    assert in_processes(train_with_zero_2, 2, str(tmp_path)) == [0, 0]
    model, optimizer = model_and_optimizer()
    for _ in range(3):
        model(**STORIES).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    num_weights = sum(weight.numel() for weight in model.parameters())
    for rank in range(2):
        told, weights = load_file(tmp_path / f"{rank}.told"), load_file(tmp_path / f"{rank}.model")
        assert told["stage"] == 2
        assert num_weights / 2 <= told["size"] < 0.55 * num_weights, "half of the optimizer's state each"
        for name, weight in model.state_dict().items():
            torch.testing.assert_close(weights[name], weight, rtol=1e-3, atol=1e-5, msg=name)
