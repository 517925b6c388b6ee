"""On a GPU: a training step waits for the device once, and mixes no tensors of both."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from story_cases import batch_for, tiny_system

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from host_waits import DEVICE, AwayTensor, PretendDevice, count_host_waits, move, on_device, pretend_device  # noqa: E402

SYSTEMS = ["seq2seq", "hlstm-msa-ca", "ie-msa-ga", "ie-copy-tails"]


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("num_sampled_classes", [None, 6])
def test_a_training_step_waits_once(name, num_sampled_classes):
    model = tiny_system(name, num_sampled_classes=num_sampled_classes, encoder_loss_sampling_ratio=0.5)
    assert count_host_waits(model.train(), batch_for(name, seed=6, num_stories=4)) == 1


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("implementation", ["fused", "eager"])
def test_same_loss_and_gradients_as_on_the_cpu(name, implementation):
    model = tiny_system(name, recurrence_implementation=implementation).train()
    batch = batch_for(name, seed=6, num_stories=4)
    expected = model(**batch).loss
    expected.backward()
    gradients = {key: weight.grad for key, weight in model.named_parameters()}
    model.zero_grad()
    with pretend_device():
        loss = move(model)(**on_device(batch)).loss
        loss.backward()
    assert loss.device == DEVICE
    torch.testing.assert_close(loss.detach().stored, expected.detach())
    for key, weight in model.named_parameters():
        torch.testing.assert_close(weight.grad.stored, gradients[key])


@pytest.mark.parametrize("name", ["hlstm-copy", "ie-copy-tails"])
def test_wrong_inputs_are_refused_by_name(name):
    batch = batch_for(name, seed=6, num_stories=4)
    wrong = {"labels": "labels", "input_ids": "input_ids"}
    wrong |= {"triple_ids": "triple_ids"} if name == "ie-copy-tails" else {}
    model = move(tiny_system(name))
    for key, said in wrong.items():
        with pretend_device(), pytest.raises(ValueError, match=said):
            model(**on_device({**batch, key: torch.where(batch[key] > 0, 10**6, batch[key])}))


def test_what_is_counted():
    numbers = AwayTensor(torch.tensor([3, 0, 3]))
    with PretendDevice() as device:
        assert numbers.sum().item() == 6
        assert numbers.cpu().tolist() == [3, 0, 3]
        numbers.nonzero(), numbers.unique(), numbers[numbers > 0]
        assert device.waits.total() == 5
        numbers.index_select(0, numbers.argsort()).cumsum(0).to(torch.float32)
        torch.zeros(3).nonzero(), torch.ones(3).to(DEVICE)
        assert device.waits.total() == 5, "neither work on the device nor on the host"
        with pytest.raises(RuntimeError, match="two devices"):
            numbers + torch.zeros(3)
