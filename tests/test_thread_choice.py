"""Commands for a single story use one thread, unless the user has chosen."""

import os
import subprocess
import sys

import pytest
import torch

from hf_storyend.cli import write
from hf_storyend.demo import app
from hf_storyend.pretrained import use_threads_of_one_story

STORY = "Mei put a cake in the oven. She fell asleep."


@pytest.fixture(autouse=True)
def several_threads(monkeypatch):
    """As torch starts on a machine with several cores."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(1)


class Stop(Exception):
    """Ends a command where its work would begin."""


@pytest.mark.parametrize(
    ("place", "command"),
    [
        ("hf_storyend.pretrained.load", lambda: write.generate(write.GenerateOptions((STORY,)))),
        ("hf_storyend.explanation.run.load", lambda: write.explain(write.ExplainOptions(STORY))),
        ("hf_storyend.ranking.rank", lambda: write.rank(write.RankOptions(STORY, ("It burnt.",)))),
        ("hf_storyend.demo.app.build_demo", lambda: app.launch_demo()),
    ],
)
def test_one_thread_for_one_story(monkeypatch, place, command):
    threads = []

    def stop(*arguments, **settings):
        threads.append(torch.get_num_threads())
        raise Stop

    monkeypatch.setattr(place, stop)
    with pytest.raises(Stop):
        command()
    assert threads == [1]


def test_the_user_decides(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    use_threads_of_one_story()
    assert torch.get_num_threads() == 3


def test_the_library_leaves_threads_alone():
    load = "import hf_storyend; hf_storyend.load()"
    code = f"import torch; torch.set_num_threads(3); {load}; print(torch.get_num_threads())"
    surroundings = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=surroundings)
    assert result.stdout.split()[-1] == "3", result.stderr
