"""
The demo under load: many users at once over HTTP, who ask again as soon as they are answered.

    python benchmarks/demo_load.py --users 64 --seconds 120
    python benchmarks/demo_load.py --users 4 --seconds 1860 --requests 2000

With `--requests`, that many are spread evenly over the time. Starts `storyend demo` on a free port of this machine. It
fails, with exit code 1, if a request was not answered, or answered otherwise than the same one before, or if the
server's memory grew after the first part of the time. Memory is printed at each tenth of it. Ctrl+C ends it with what
was measured so far, which is a failure, too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx
import psutil

from hf_storyend.data.embedded import embedded_stories
from hf_storyend.data.story_records import StoryRecord

DECODINGS = ("greedy", "sampling", "beam_search")
# Memory is not yet at rest while models, caches and threads are still coming into use.
WARM_UP_SHARE = 0.25
MAX_WAIT = 600.0


@dataclass
class Record:
    """What happened."""

    num_asked: int = 0
    seconds: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    answers: dict[str, list[str]] = field(default_factory=dict)
    # Moment, requests answered, memory.
    megabytes: list[tuple[float, int, float]] = field(default_factory=list)

    def add_answer(self, question: str, endings: list[str]) -> None:
        """One more answer; the same question must have the same one, whoever asks it and when."""
        if self.answers.setdefault(question, endings) != endings:
            self.failures.append(f"another answer than before to {question}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help="models of the demo (default: the one of the package)")
    parser.add_argument("--users", type=int, default=64, help="users at the same time (default: 64)")
    parser.add_argument("--seconds", type=float, default=120, help="how long they go on asking (default: 120)")
    parser.add_argument("--requests", type=int, help="requests in that time (default: each user's next at once)")
    parser.add_argument("--max-growth", type=float, default=64, help="MB of memory after warming up (default: 64)")
    options = parser.parse_args()
    record = Record()
    with running_demo(options.models) as (address, process):
        try:
            asyncio.run(visit(address, process, record, options))
        except KeyboardInterrupt:
            record.failures.append("stopped before the end")
    growth = report(record, options)
    return int(bool(record.failures) or growth > options.max_growth)


@contextmanager
def running_demo(models: list[str]) -> Iterator[tuple[str, psutil.Process]]:
    """`storyend demo` in a process of its own, that has written its first ending."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    command = [sys.executable, "-m", "hf_storyend.cli.main", "demo", *models, "--no-open", "--port", str(port)]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    server = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        # Its one line comes when it is ready.
        if server.stdout is None or "Story endings at" not in server.stdout.readline():
            raise RuntimeError(f"`{' '.join(command)}` did not start.")
        yield f"http://127.0.0.1:{port}/gradio_api/call/endings", psutil.Process(server.pid)
    finally:
        server.terminate()
        server.wait(60)


async def visit(address: str, process: psutil.Process, record: Record, options: argparse.Namespace) -> None:
    """All users at once; when the time or the requests are over, each waits for its last answer."""
    start = time.monotonic()
    watcher = asyncio.create_task(watch_memory(process, record, start))
    # The server closes connections that were idle for five seconds, maybe just as they are used again.
    limits = httpx.Limits(max_connections=None, keepalive_expiry=1)
    async with httpx.AsyncClient(timeout=MAX_WAIT, limits=limits) as client:
        users = (ask_on(client, address, record, user, start, options) for user in range(options.users))
        await asyncio.gather(*users)
    watcher.cancel()
    read_memory(process, record, start)


async def watch_memory(process: psutil.Process, record: Record, start: float) -> None:
    while True:
        read_memory(process, record, start)
        await asyncio.sleep(0.5)


def read_memory(process: psutil.Process, record: Record, start: float) -> None:
    memory = process.memory_info().rss / 2**20
    record.megabytes.append((time.monotonic() - start, len(record.seconds), memory))


async def may_ask(record: Record, start: float, options: argparse.Namespace) -> bool:
    """Wait for the moment of the next request; False if there is none."""
    if options.requests is None:
        # At least once each, however busy the machine is.
        is_due = record.num_asked < options.users or time.monotonic() < start + options.seconds
        record.num_asked += is_due
        return is_due
    if record.num_asked >= options.requests:
        return False
    moment = start + record.num_asked * options.seconds / options.requests
    record.num_asked += 1
    await asyncio.sleep(max(0.0, moment - time.monotonic()))
    return True


async def ask_on(
    client: httpx.AsyncClient, address: str, record: Record, user: int, start: float, options: argparse.Namespace
) -> None:
    """One user with one open page: a request after the other, from a few thousand possible ones."""
    stories, draw = embedded_stories(), random.Random(user)
    while await may_ask(record, start, options):
        question = draw_question(draw, stories)
        asked = time.monotonic()
        try:
            endings = await ask(client, address, question, f"user{user}")
        except (httpx.HTTPError, ValueError) as error:
            record.failures.append(f"{type(error).__name__}: {error}")
            await asyncio.sleep(1)
            continue
        record.seconds.append(time.monotonic() - asked)
        record.add_answer(json.dumps(question), endings)


def draw_question(draw: random.Random, stories: Sequence[StoryRecord]) -> list:
    """Values of all parameters of `endings`, in its order: over HTTP, Gradio fills in no defaults."""
    story = " ".join(draw.choice(stories)["context"])
    decoding = draw.choice(DECODINGS)
    num_endings = 1 if decoding == "greedy" else draw.randint(1, 3)
    # Story, triples, decoding, number of endings, temperature, seed, system, top p, top k.
    return [story, None, decoding, num_endings, 0.7, draw.randrange(4), None, 1.0, 0]


async def ask(client: httpx.AsyncClient, address: str, question: list, page: str) -> list[str]:
    """Queue a request and wait for its answer."""
    queued = await client.post(address, json={"data": question, "session_hash": page})
    queued.raise_for_status()
    answer = await client.get(f"{address}/{queued.json()['event_id']}")
    answer.raise_for_status()
    # Server-sent events: heartbeats, then `complete` or `error`.
    *_, event, data = [line for line in answer.text.splitlines() if line]
    if event != "event: complete":
        raise ValueError(f"{event}, {data}")
    endings = [found["ending"] for found in json.loads(data.removeprefix("data: "))[0]]
    if len(endings) != question[3]:
        raise ValueError(f"{len(endings)} endings where {question[3]} were asked for")
    return endings


def report(record: Record, options: argparse.Namespace) -> float:
    """Print the table; the growth of memory in MB, from the end of warming up to the end of all."""
    # Of the time that it took: a busy machine answers late.
    seconds = record.megabytes[-1][0]
    warm, half, late, last = (memory_at(record, share * seconds) for share in (WARM_UP_SHARE, 0.5, 0.75, 1.0))
    num_answered, num_failed = len(record.seconds), len(record.failures)
    rows = {
        "users": f"{options.users}",
        "seconds": f"{seconds:.0f}",
        "requests": f"{num_answered + num_failed}",
        "answered": f"{num_answered}",
        "failed": f"{num_failed}",
        "different requests": f"{len(record.answers)}",
    }
    if num_answered > 1:
        quantiles = statistics.quantiles(record.seconds, n=20)
        rows |= {"median latency": f"{quantiles[9]:.2f} s", "95 % latency": f"{quantiles[18]:.2f} s"}
    rows |= {
        "memory at the start": f"{record.megabytes[0][2]:.0f} MB",
        "after a quarter": f"{warm:.0f} MB",
        "half, three quarters": f"{half:.0f} MB, {late:.0f} MB",
        "at the end": f"{last:.0f} MB",
        "growth from a quarter on": f"{last - warm:+.0f} MB (at most {options.max_growth:.0f})",
    }
    for name, value in rows.items():
        print(f"{name:<24} {value}")
    print_memory(record)
    for failure in record.failures[:10]:
        print(f"failed: {failure}")
    return last - warm


def memory_at(record: Record, seconds: float) -> float:
    """Median of the ten readings up to a moment: it goes up and down with every request."""
    readings = [size for moment, _, size in record.megabytes if moment <= seconds] or [record.megabytes[0][2]]
    return statistics.median(readings[-10:])


def print_memory(record: Record) -> None:
    """Print the memory at each tenth of the time."""
    print("seconds  requests  memory")
    for tenth in range(11):
        moment, num_answered, _ = record.megabytes[tenth * (len(record.megabytes) - 1) // 10]
        print(f"{moment:7.0f}  {num_answered:8}  {memory_at(record, moment):.0f} MB", flush=True)


if __name__ == "__main__":
    sys.exit(main())
