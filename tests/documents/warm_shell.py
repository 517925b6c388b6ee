"""
A process that has imported everything and forks for each command: the same programs, without seconds of imports each.

Every line of its input is a job, `{"words": [...], "folder": ..., "environment": {...}, "out": ..., "err": ...}`; the
answer is the exit code.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import traceback

import matplotlib.pyplot  # noqa: F401
import scipy.stats  # noqa: F401

import hf_storyend.annotation
import hf_storyend.cli.main
import hf_storyend.comparison
import hf_storyend.data.prepare
import hf_storyend.evaluation
import hf_storyend.hub
import hf_storyend.training  # noqa: F401


def run(words: list[str]) -> None:
    """Be that command."""
    if words[:2] == ["accelerate", "launch"]:
        # All that it would do here is to start the script in another process.
        words = ["python", *words[2:]]
    if words[0] == "storyend":
        sys.argv = words
        hf_storyend.cli.main.main()
    elif words[:2] == ["python", "-m"]:
        sys.argv = words[2:]
        runpy.run_module(words[2], run_name="__main__", alter_sys=True)
    else:
        assert words[0] == "python", words
        sys.argv = words[1:]
        runpy.run_path(words[1], run_name="__main__")


def exit_code_of(words: list[str]) -> int:
    try:
        run(words)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def be_child(job: dict) -> None:
    os.chdir(job["folder"])
    os.environ.update(job["environment"])
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(job[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    code = exit_code_of(job["words"])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def main() -> None:
    for line in sys.stdin:
        job = json.loads(line)
        child = os.fork()
        if child == 0:
            be_child(job)
        status = os.waitpid(child, 0)[1]
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()
    # Tidying up after so many imports would take seconds.
    os._exit(0)


if __name__ == "__main__":
    main()
