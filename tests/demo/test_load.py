"""The demo under a small load, by the benchmark that puts it under a large one."""

from __future__ import annotations

import inspect
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("gradio", reason="gradio is not installed")

from hf_storyend.data.embedded import embedded_stories  # noqa: E402
from hf_storyend.demo.handlers import DemoHandlers  # noqa: E402

PROGRAM = Path(__file__).parent.parent.parent / "benchmarks" / "demo_load.py"
sys.path.append(str(PROGRAM.parent))

from demo_load import draw_question  # noqa: E402


def put_under_load(*options: str) -> subprocess.CompletedProcess:
    command = [sys.executable, str(PROGRAM), *options, "--users", "8", "--seconds", "4"]
    return subprocess.run(command, capture_output=True, text=True, timeout=1800)


def test_a_question_has_all_values_that_the_api_takes():
    """Over HTTP, Gradio refuses fewer of them, whatever their defaults."""
    parameters = list(inspect.signature(DemoHandlers.endings).parameters)
    assert len(draw_question(random.Random(0), embedded_stories())) == len(parameters) - len(["self"])


@pytest.mark.slow
def test_every_request_is_answered(model_directory):
    # In a run this short, memory still grows as libraries are loaded.
    done = put_under_load(model_directory, "--max-growth", "1000")
    assert done.returncode == 0, done.stdout + done.stderr
    numbers = {name: int(number) for name, number in re.findall(r"^(\w+) +(\d+)$", done.stdout, re.MULTILINE)}
    assert numbers["requests"] == numbers["answered"] >= 8 and numbers["failed"] == 0


@pytest.mark.slow
def test_requests_spread_over_the_time(model_directory):
    done = put_under_load(model_directory, "--max-growth", "1000", "--requests", "5")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^answered +5$", done.stdout, re.MULTILINE)
    seconds, requests, memory = zip(*re.findall(r"^ *(\d+) +(\d+) +(\d+) MB$", done.stdout, re.MULTILINE), strict=True)
    assert len(seconds) == 11 and int(seconds[-1]) >= 3 and requests[-1] == "5" and min(map(int, memory)) > 0


@pytest.mark.slow
def test_memory_beyond_the_bound_is_a_failure(model_directory):
    done = put_under_load(model_directory, "--max-growth", "-10000")
    assert done.returncode == 1 and "(at most -10000)" in done.stdout
