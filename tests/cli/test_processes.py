"""`storyend evaluate` and `storyend generate` in two processes: each story once, the same numbers as in one."""

import json

import pytest
from training_runs import free_port, run_module

MODULE = ("hf_storyend",)
TORCHRUN = ("torch.distributed.run", "--nproc_per_node", "2", "--master_port")
EVALUATE = ("evaluate", "--data_dir", "embedded", "--max_stories", "9", "--max_new_tokens", "6", "--num_seeds", "0")
STORIES = ("Mei put a cake in the oven. She fell asleep.", "Omar's car broke.", "Nina sang. Her hands were shaking.")


def printed_json(*arguments: str):
    """What a command prints: one JSON document, or parsing fails."""
    done = run_module(*arguments)
    assert done.returncode == 0, done.stderr
    # DeepSpeed, where it is installed, writes a line on standard output when Accelerate imports it.
    lines = done.stdout.splitlines()
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


def test_too_few_processes_are_refused():
    launch = ("accelerate.commands.launch", "--quiet", "--cpu", "--num_processes", "2", "--module")
    done = run_module(*launch, "hf_storyend", "generate", STORIES[0])
    assert done.returncode == 1 and not done.stdout
    assert "has started only this process" in done.stderr and "Traceback" not in done.stderr
