"""A loss of power at any write of a save: what was saved last, or was being saved, loads bit-exactly."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from robustness.power_loss import PowerLoss
from small_tokenizer import small_tokenizer

from hf_storyend import IncrementalEncoderConfig, IncrementalEncoderForEndingGeneration, IncrementalEncoderTokenizer
from hf_storyend.evaluation.results import Evaluation
from hf_storyend.files import atomic_directory, atomic_write
from hf_storyend.manifest import is_complete, recover_directory, write_manifest
from hf_storyend.training.checkpoints import (
    Checkpoint,
    RunState,
    latest_valid_checkpoint,
    load_checkpoint,
    recover_output_dir,
    save_checkpoint,
)
from hf_storyend.training.outputs import problem_with_best_model, write_best_model, write_results
from hf_storyend.training.progress import TrainingLog

NUM_SAVES = 3
RUN = {
    "system": "ie-msa-ca",
    "data": "stories",
    "num_processes": 1,
    "device": "cpu",
    "minutes": 1,
    "options": {"data_dir": None},
}


@pytest.fixture(scope="module")
def tokenizer() -> IncrementalEncoderTokenizer:
    return small_tokenizer()


@pytest.fixture(scope="module")
def model(tokenizer) -> IncrementalEncoderForEndingGeneration:
    config = IncrementalEncoderConfig.for_tokenizer(tokenizer, embedding_size=8, hidden_size=12)
    return IncrementalEncoderForEndingGeneration(config)


@dataclass
class Saves:
    """
    Something that is saved again and again.

    Args:
        save: Saves version 1, 2, ... into a directory.
        load: Recovers the directory, as the next run does, and returns the version that it then holds, 0 for none. It
            fails unless that is loaded bit-exactly.
    """

    save: Callable[[Path, int], None]
    load: Callable[[Path], int]


def weights_of(model, version: int) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(version)
    return {name: torch.randn(tensor.shape, generator=generator) for name, tensor in model.state_dict().items()}


def version_of(model, tensors: dict[str, torch.Tensor]) -> int:
    for version in range(1, NUM_SAVES + 1):
        expected = weights_of(model, version)
        if expected.keys() == tensors.keys() and all(torch.equal(expected[name], tensors[name]) for name in expected):
            return version
    raise AssertionError("These weights were never saved.")


def checkpoints(model, tokenizer) -> Saves:
    def save(directory: Path, version: int) -> None:
        weights = weights_of(model, version)
        optimizer = {f"{name}/exp_avg": tensor for name, tensor in weights.items()}
        save_checkpoint(directory, Checkpoint(version, weights, optimizer, {"run": {}}), keep=2)

    def load(directory: Path) -> int:
        recover_output_dir(directory)
        path = latest_valid_checkpoint(directory)
        if path is None:
            return 0
        loaded = load_checkpoint(path)
        assert (
            version_of(model, {name.split("/")[0]: tensor for name, tensor in loaded.optimizer.items()}) == loaded.step
        )
        return version_of(model, loaded.weights)

    return Saves(save, load)


def best_model(model, tokenizer) -> Saves:
    def save(directory: Path, version: int) -> None:
        write_best_model(directory, model, weights_of(model, version), tokenizer, RunState(best_step=version), "a run")

    def load(directory: Path) -> int:
        recover_output_dir(directory)
        if not (directory / "best").exists():
            return 0
        version = version_of(model, load_model(directory / "best"))
        assert problem_with_best_model(directory, RunState(best_step=version), "a run") is None
        return version

    return Saves(save, load)


def final_model(model, tokenizer) -> Saves:
    def save(directory: Path, version: int) -> None:
        run, state = {**RUN, "updates": version}, RunState(step=version)
        log, evaluation = TrainingLog(directory, writes=False), Evaluation({"perplexity": float(version)})
        write_results(directory, model, weights_of(model, version), tokenizer, evaluation, run, log, state, "a run")

    def load(directory: Path) -> int:
        recover_output_dir(directory)
        if not (directory / "model.safetensors").exists():
            assert not any(directory.iterdir())
            return 0
        version = version_of(model, load_model(directory))
        assert is_complete(directory) and f"| updates | {version} |" in (directory / "README.md").read_text()
        return version

    return Saves(save, load)


def prepared_data(model, tokenizer) -> Saves:
    """As `prepare --overwrite` replaces its directory."""

    def save(directory: Path, version: int) -> None:
        with atomic_directory(directory / "new" / "data") as folder:
            model.save_pretrained(folder, state_dict=weights_of(model, version))
            tokenizer.save_pretrained(folder)
            write_manifest(folder, "prepared data")

    def load(directory: Path) -> int:
        recover_directory(directory / "new" / "data")
        if not (directory / "new" / "data").exists():
            return 0
        assert is_complete(directory / "new" / "data")
        return version_of(model, load_model(directory / "new" / "data"))

    return Saves(save, load)


def text_file(model, tokenizer) -> Saves:
    def save(directory: Path, version: int) -> None:
        atomic_write(directory / "options.json", f"{version}\n" * 400)

    def load(directory: Path) -> int:
        if not (directory / "options.json").exists():
            return 0
        (line,) = set((directory / "options.json").read_text().splitlines())
        return int(line)

    return Saves(save, load)


def load_model(directory: Path) -> dict[str, torch.Tensor]:
    IncrementalEncoderTokenizer.from_pretrained(directory)
    return IncrementalEncoderForEndingGeneration.from_pretrained(directory).state_dict()


def record(saves: Saves, root: Path) -> PowerLoss:
    root.mkdir()
    layer = PowerLoss(root)
    with layer.recording():
        for version in range(1, NUM_SAVES + 1):
            saves.save(root, version)
            layer.mark()
    return layer


def crash_points(layer: PowerLoss, count: int, seed: int = 0) -> Iterator[tuple[int, random.Random]]:
    """Every event once, then again with other outcomes; or some of them, spread over all."""
    total, order = len(layer.events) + 1, random.Random(seed)
    points = [point for _ in range(count // total + 1) for point in order.sample(range(total), total)]
    yield from ((point, random.Random(f"{seed} {number}")) for number, point in enumerate(points[:count]))


def check_all(saves: Saves, tmp_path: Path, count: int) -> None:
    layer = record(saves, tmp_path / "root")
    assert saves.load(tmp_path / "root") == NUM_SAVES
    for point, rng in crash_points(layer, count):
        disk = tmp_path / "disk"
        finished = layer.crash(point, rng, disk)
        version = saves.load(disk)
        assert version in (finished, finished + 1), f"Power lost before event {point} of {len(layer.events)}."
        # The next save works on what is left, whatever that is.
        if rng.random() < 0.1:
            saves.save(disk, NUM_SAVES)
            assert saves.load(disk) == NUM_SAVES
        shutil.rmtree(disk)


KINDS = [checkpoints, best_model, final_model, prepared_data, text_file]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_some_crash_points(kind, model, tokenizer, tmp_path):
    check_all(kind(model, tokenizer), tmp_path, count=12)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_many_crash_points(kind, model, tokenizer, tmp_path):
    """1,500 in all."""
    check_all(kind(model, tokenizer), tmp_path, count=300)


def test_the_layer_drops_what_was_not_synced(tmp_path):
    """It finds the fault of the usual ways to write a file."""

    def careless(directory: Path, version: int) -> None:
        (directory / "new").write_text(f"{version}\n" * 400)
        (directory / "new").rename(directory / "options.json")

    saves = Saves(careless, text_file(None, None).load)
    with pytest.raises((AssertionError, ValueError)):
        check_all(saves, tmp_path, count=100)
