"""`storyend demo` as a process of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class Server:
    """A running demo."""

    address: str
    process: subprocess.Popen

    def get(self, path: str = "") -> str:
        with urllib.request.urlopen(self.address + path, timeout=600) as answer:
            return answer.read().decode()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextmanager
def running(command: Sequence[str], port: int, **settings) -> Iterator[Server]:
    """Start a command, wait until it answers, and stop it at the end."""
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", **settings.pop("env", {})}
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **settings
    )
    server = Server(f"http://127.0.0.1:{port}/", process)
    try:
        wait_until_ready(server)
        yield server
    finally:
        process.terminate()
        process.wait(600)


def wait_until_ready(server: Server, interval: float = 0.1, num_attempts: int = 6000) -> None:
    """Poll until the server answers or its process ends; the bound is only there so that a hang ends."""
    for _ in range(num_attempts):
        if server.process.poll() is not None:
            raise AssertionError(f"the demo ended:\n{server.process.stdout.read()}")
        try:
            server.get("config")
            return
        except (OSError, urllib.error.URLError):
            time.sleep(interval)
    raise AssertionError("the demo runs, but does not answer")


@contextmanager
def running_demo(models: Sequence[str]) -> Iterator[Server]:
    """`storyend demo MODEL ...`."""
    port = free_port()
    command = [sys.executable, "-m", "hf_storyend.cli.main", "demo", *models, "--no-open", "--port", str(port)]
    with running(command, port) as server:
        yield server
