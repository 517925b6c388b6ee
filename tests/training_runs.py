"""Training runs in processes of their own, which tests can kill."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

import torch
from safetensors.torch import load_file

from hf_storyend.training import TrainingOptions, TrainingRun, run_as_program, train

# Seconds after which a process counts as hanging; no test depends on how long anything takes.
PATIENCE = 600

# A server that has imported everything forks each run: starting one takes a moment instead of ten seconds.
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["hf_storyend.training.run", "hf_storyend.data.prepare"])


def small_options(prepared: Path, output: Path, **changes) -> TrainingOptions:
    """Two and a half epochs of eight updates, with dropout, an evaluation every seven and a checkpoint every three."""
    settings = {
        "data_dir": str(prepared),
        "output_dir": str(output),
        "per_device_train_batch_size": 6,
        "max_train_samples": 46,
        "max_steps": 20,
        "dropout": 0.1,
        "eval_steps": 7,
        "max_eval_samples": 4,
        "save_steps": 3,
        "logging_steps": 1,
        "num_sample_endings": 1,
    }
    return TrainingOptions(**{**settings, **changes})


@dataclass
class Rank:
    """Makes a process one of several that train together."""

    rank: int
    world_size: int
    port: int
    then: Callable[[], None] | None = None

    def __call__(self) -> None:
        if self.then is not None:
            self.then()
        place = {"RANK": self.rank, "LOCAL_RANK": self.rank, "WORLD_SIZE": self.world_size, "MASTER_PORT": self.port}
        os.environ.update({name: str(value) for name, value in place.items()}, MASTER_ADDR="127.0.0.1")


@dataclass
class PauseAfter:
    """Makes a run create `<output_dir>.paused` after an update and wait there for a signal."""

    step: int

    def __call__(self) -> None:
        original = TrainingRun.step

        def step(run: TrainingRun) -> None:
            original(run)
            if run.state.step == self.step:
                Path(f"{run.options.output_dir}.paused").touch()
                _wait(lambda: bool(run.signals.received))

        TrainingRun.step = step


def wait_for_pause(options: TrainingOptions, process: BaseProcess) -> None:
    wait_for(Path(f"{options.output_dir}.paused").is_file, process)


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


def run_module(*words: str) -> subprocess.CompletedProcess:
    """Run `python -m` with these words to its end."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE)


def start_run(options: TrainingOptions, before: Callable[[], None] | None = None) -> BaseProcess:
    """Start a run in another process; its output goes to `<output_dir>.log`. `before` is called there first."""
    process = _CONTEXT.Process(target=_run, args=(options, before))
    process.start()
    return process


def finish_run(options: TrainingOptions, before: Callable[[], None] | None = None) -> int:
    """Run to the end in another process and return its exit code."""
    process = start_run(options, before)
    process.join(PATIENCE)
    assert process.exitcode is not None, f"The run hangs: {output_of(options)}"
    return process.exitcode


def kill(process: BaseProcess, number: int = signal.SIGKILL) -> int:
    """Send a signal and return the exit code."""
    os.kill(process.pid, number)
    process.join(PATIENCE)
    return process.exitcode


def wait_for(condition: Callable[[], bool], process: BaseProcess) -> None:
    """Wait until something is true of a run that goes on."""
    _wait(lambda: condition() or not process.is_alive())
    assert condition(), "The run ended before."


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "It did not happen."
        time.sleep(0.01)


def output_of(options: TrainingOptions) -> str:
    return Path(f"{options.output_dir}.log").read_text(encoding="utf-8")


def read_log(options: TrainingOptions) -> list[dict]:
    """Events of `train_log.jsonl`."""
    text = (Path(options.output_dir) / "train_log.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def final_weights(options: TrainingOptions) -> dict[str, torch.Tensor]:
    return load_file(Path(options.output_dir) / "model.safetensors")


def last_checkpoint(options: TrainingOptions, name: str) -> dict[str, torch.Tensor]:
    """Tensors of the checkpoint of the last update: `model` or `optimizer`."""
    return load_file(Path(options.output_dir) / f"checkpoint-{options.max_steps}" / f"{name}.safetensors")


def are_identical(these: dict[str, torch.Tensor], those: dict[str, torch.Tensor]) -> bool:
    """Whether all tensors are equal bit by bit."""
    return these.keys() == those.keys() and all(torch.equal(these[name], those[name]) for name in these)


def in_processes(function: Callable[..., None], num_processes: int, *arguments: object) -> list[int]:
    """Call a function in processes that train together and return their exit codes."""
    port = free_port()
    ranks = [Rank(rank, num_processes, port) for rank in range(num_processes)]
    processes = [_CONTEXT.Process(target=_call, args=(rank, function, arguments)) for rank in ranks]
    for process in processes:
        process.start()
    for process in processes:
        process.join(PATIENCE)
    return [process.exitcode for process in processes]


def _call(rank: Rank, function: Callable[..., None], arguments: tuple) -> None:
    torch.set_num_threads(1)
    rank()
    function(*arguments)


def _run(options: TrainingOptions, before: Callable[[], None] | None) -> None:
    log = os.open(f"{options.output_dir}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    torch.set_num_threads(1)
    sys.argv = ["train.py"]
    if before is not None:
        before()
    run_as_program(lambda: train(options))
