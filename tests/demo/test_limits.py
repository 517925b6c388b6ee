"""What strangers may send to the demo: no files, small requests, and not more than it can keep."""

from __future__ import annotations

import http.client
import json
import sys
import urllib.parse
from pathlib import Path

import pytest

pytest.importorskip("gradio", reason="gradio is not installed")

from demo.demo_server import free_port, running  # noqa: E402

from hf_storyend.demo.app import build_demo  # noqa: E402
from hf_storyend.demo.generator import EndingGenerator  # noqa: E402
from hf_storyend.demo.limits import CACHE_SECONDS, MAX_BODY_BYTES, MAX_QUEUE  # noqa: E402
from hf_storyend.demo.requests import MAX_CHARACTERS, EndingRequest, parse_story  # noqa: E402

STORY = "Anna put a cake in the oven. The cake in the oven was burnt."


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    """Where Gradio would put what is uploaded."""
    return tmp_path_factory.mktemp("files")


@pytest.fixture(scope="module")
def server(model_directory, files):
    port = free_port()
    command = [sys.executable, "-m", "hf_storyend.cli.main", "demo", model_directory, "--no-open", "--port", str(port)]
    with running(command, port, env={"GRADIO_TEMP_DIR": str(files)}) as server:
        yield server


def post(server, path: str, body, headers: dict[str, str] | None = None, chunked: bool = False) -> tuple[int, bytes]:
    address = urllib.parse.urlsplit(server.address)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=600)
    try:
        connection.request("POST", path, body, headers or {}, encode_chunked=chunked)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (BrokenPipeError, ConnectionResetError):
        # It has refused before all was sent.
        return 413, b""
    finally:
        connection.close()


@pytest.mark.parametrize(
    "path", ["/gradio_api/upload", "/upload", "/gradio_api/upload/", "/gradio_api/upload?upload_id=x"]
)
def test_uploads_are_closed(server, files, path):
    body = '--x\r\nContent-Disposition: form-data; name="files"; filename="a"\r\n\r\nhello\r\n--x--\r\n'
    status, _ = post(server, path, body, {"Content-Type": "multipart/form-data; boundary=x"})
    assert status == 403
    assert not [path for path in files.rglob("*") if path.is_file() and path.read_bytes() == b"hello"]


def call(story: str) -> str:
    return json.dumps({"data": [story, [], "greedy", 1, 0.7, 1, None]})


def test_bodies_are_limited(server):
    headers = {"Content-Type": "application/json"}
    status, _ = post(server, "/gradio_api/call/endings", call("x" * MAX_BODY_BYTES), headers)
    assert status == 413
    status, answer = post(server, "/gradio_api/call/endings", call(STORY), headers)
    assert status == 200 and json.loads(answer)["event_id"]


def test_bodies_of_unknown_length_are_limited(server):
    """Said to be of no length, in pieces."""
    pieces = iter([b"x" * 8192] * 64)
    headers = {"Content-Type": "application/json", "Transfer-Encoding": "chunked"}
    status, _ = post(server, "/gradio_api/call/endings", pieces, headers, chunked=True)
    assert status == 413


def test_the_longest_story_fits():
    assert len(call("\U0001f600" * MAX_CHARACTERS)) < MAX_BODY_BYTES


def test_the_queue_and_the_files_are_bounded(model_directory):
    demo = build_demo([model_directory])
    assert demo._queue.max_size == MAX_QUEUE
    assert demo.delete_cache == CACHE_SECONDS


def memory_of(process) -> int:
    """Kilobytes that a process has in memory."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="Linux tells how much memory a process has.")
def test_memory_is_flat_over_two_thousand_requests(server):
    from gradio_client import Client

    client = Client(server.address, verbose=False, httpx_kwargs={"timeout": 600})
    seen = []
    for number in range(2000):
        client.predict(f"{STORY} It was number {number}.", api_name="/endings")
        if number % 250 == 249:
            seen.append(memory_of(server.process))
    # The first quarter fills caches.
    assert max(seen[2:]) - seen[1] < 25_000, seen


def test_cached_requests_are_bounded(model_directory):
    generator = EndingGenerator([model_directory])
    for number in range(40):
        generator.generate(EndingRequest(generator.systems[0], parse_story(f"{STORY} It was number {number}.")))
    assert generator.generate.cache_info().currsize <= 32
