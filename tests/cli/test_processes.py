"""`storyend evaluate` and `storyend generate` in two processes: each story once, the same numbers as in one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from training_runs import PATIENCE, free_port, run_module

MODULE = ("hf_storyend",)
TORCHRUN = ("torch.distributed.run", "--nproc_per_node", "2", "--master_port")
EVALUATE = ("evaluate", "--data_dir", "embedded", "--max_stories", "9", "--max_new_tokens", "6", "--num_seeds", "0")
TWO_NODE = str(Path(__file__).parents[2] / "examples" / "accelerate_configs" / "two_node.yaml")
STORIES = ("Mei put a cake in the oven. She fell asleep.", "Omar's car broke.", "Nina sang. Her hands were shaking.")


def printed_json(*arguments: str):
    """What a command prints: one JSON document, or parsing fails."""
    done = run_module(*arguments)
    assert done.returncode == 0, done.stderr
    return parsed(done.stdout)


def parsed(output: str):
    # DeepSpeed, where it is installed, writes a line on standard output when Accelerate imports it.
    lines = output.splitlines()
    return json.loads("\n".join(lines[next(n for n, line in enumerate(lines) if line in ("{", "[")) :]))


@pytest.mark.slow
def test_evaluate_in_two_processes_equals_one():
    settings = (*EVALUATE, "--num_beams", "1", "--bootstrap_samples", "0", "--batch_size", "4", "--json")
    alone = printed_json(*MODULE, *settings)
    together = printed_json(*TORCHRUN, str(free_port()), "-m", *MODULE, *settings)
    assert together["num_stories"] == alone["num_stories"] == 9
    metrics = {name: value for name, value in alone["metrics"].items() if name != "stories_per_second"}
    assert {name: together["metrics"][name] for name in metrics} == pytest.approx(metrics, rel=1e-5)


@pytest.mark.slow
def test_generate_in_two_processes_equals_one():
    settings = ("generate", *STORIES, "--do_sample", "--evidence_top_k", "0", "--json")
    alone = printed_json(*MODULE, *settings)
    together = printed_json(*TORCHRUN, str(free_port()), "-m", *MODULE, *settings)
    assert [entry["story"] for entry in together] == list(STORIES)
    for one, other in zip(alone, together, strict=True):
        assert [ending["ending"] for ending in one["endings"]] == [ending["ending"] for ending in other["endings"]]


@pytest.mark.slow
@pytest.mark.parametrize("command", ["evaluate", "generate"])
def test_accelerate_launch_of_two_machines_gives_each_story_once(command):
    """The shipped configuration for two machines, here with a process each; the main process prints."""
    settings = (*EVALUATE, "--bootstrap_samples", "0", "--json")
    if command == "generate":
        settings = ("generate", *STORIES, "--evidence_top_k", "0", "--json")
    port = str(free_port())
    machines = [
        subprocess.Popen(
            [
                *(sys.executable, "-m", "accelerate.commands.launch", "--quiet", "--config_file", TWO_NODE),
                *("--num_processes", "2", "--mixed_precision", "no", "--machine_rank", str(rank)),
                *("--main_process_port", port, "--module", *MODULE, *settings),
            ],
            env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for rank in range(2)
    ]  # fmt: skip
    outputs = [machine.communicate(timeout=PATIENCE) for machine in machines]
    assert [machine.returncode for machine in machines] == [0, 0], outputs
    together, alone = parsed(outputs[0][0]), printed_json(*MODULE, *settings)
    assert "{" not in outputs[1][0], "one process reports"
    if command == "generate":
        assert [entry["endings"] for entry in together] == [entry["endings"] for entry in alone]
        return
    assert together["num_stories"] == 9
    metrics = {name: value for name, value in alone["metrics"].items() if name != "stories_per_second"}
    assert {name: together["metrics"][name] for name in metrics} == pytest.approx(metrics, rel=1e-5)


def test_too_few_processes_are_refused():
    launch = ("accelerate.commands.launch", "--quiet", "--cpu", "--num_processes", "2", "--module")
    done = run_module(*launch, "hf_storyend", "generate", STORIES[0])
    assert done.returncode == 1 and not done.stdout
    assert "has started only this process" in done.stderr and "Traceback" not in done.stderr
