"""What strangers may send to the demo: no files, small requests, and not more than it can keep."""

from __future__ import annotations

import http.client
import json
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import pytest

pytest.importorskip("gradio", reason="gradio is not installed")

from demo.demo_server import free_port, running  # noqa: E402

from hf_storyend.demo.app import build_demo  # noqa: E402
from hf_storyend.demo.generator import EndingGenerator  # noqa: E402
from hf_storyend.demo.limits import (  # noqa: E402
    CACHE_SECONDS,
    MAX_BODY_BYTES,
    MAX_QUEUE,
    MAX_SESSIONS,
    max_body_bytes,
)
from hf_storyend.demo.options import DemoOptions, StoryLimits  # noqa: E402
from hf_storyend.demo.requests import EndingRequest, parse_story  # noqa: E402

# A little more than half an hour.
NUM_REQUESTS, WATCHED_SECONDS = 2000, 1860
STORY = "Anna put a cake in the oven. The cake in the oven was burnt."
JSON_HEADERS = {"Content-Type": "application/json"}


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
    return json.dumps({"data": [story, [], "greedy", 1, 0.7, 1, None, 1.0, 0]})


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


FILE = {"path": "http://example.com/large", "url": "http://example.com/large", "meta": {"_type": "gradio.FileData"}}


@pytest.mark.parametrize("story", [FILE, [[FILE]], {}, [STORY, {"path": "/etc/passwd"}]])
def test_values_that_gradio_would_take_for_files_are_refused(server, story):
    """It would download them, from any address, to the disk of the server."""
    status, answer = post(server, "/gradio_api/call/endings", json.dumps({"data": [story]}), JSON_HEADERS)
    assert status == 400 and b"strings, numbers and lists" in answer


@pytest.mark.parametrize("story", [FILE, [FILE]])
def test_arguments_with_names_that_gradio_would_take_for_files_are_refused(server, story):
    for path in ("/gradio_api/call/v2/endings", "/gradio_api/call/v2/endings/"):
        status, answer = post(server, path, json.dumps({"story": story, "decoding": "greedy"}), JSON_HEADERS)
        assert status == 400 and b"strings, numbers and lists" in answer
    status, answer = post(server, "/gradio_api/call/v2/endings", json.dumps({"story": STORY}), JSON_HEADERS)
    assert status == 200 and json.loads(answer)["event_id"]


@pytest.mark.parametrize("path", ["/gradio_api/deep_link?session_hash=x", "/gradio_api/deep_link/?session_hash=x"])
def test_links_to_states_of_pages_are_closed(server, path):
    """Each would be a file that nothing deletes."""
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(server.address.rstrip("/") + path, timeout=600)


@pytest.mark.parametrize(
    "body", ["story", "[]", "[" * 30_000, {"data": [], "session_hash": "x" * 65}, {"data": [], "session_hash": [1]}]
)
def test_what_is_no_request_is_refused(server, body):
    content = body if isinstance(body, str) else json.dumps(body)
    assert post(server, "/gradio_api/call/endings", content, JSON_HEADERS)[0] == 400


@pytest.mark.parametrize("route", ["run", "api"])
def test_no_route_goes_around_the_queue(server, route):
    status, answer = post(server, f"/gradio_api/{route}/endings", call(STORY), JSON_HEADERS)
    assert status >= 400 and b"queue" in answer


@pytest.mark.parametrize("limits", [StoryLimits(), StoryLimits(max_characters=100_000)])
def test_the_longest_story_fits(limits):
    assert len(call("\U0001f600" * limits.max_characters)) < max_body_bytes(limits)


@pytest.mark.slow
def test_options_raise_the_limits_of_stories(model_directory):
    """The server takes what it refuses otherwise, bodies above the usual limit too."""
    story = " ".join(["It rained."] * 7000)
    port = free_port()
    command = [sys.executable, "-m", "hf_storyend.cli.main", "demo", model_directory, "--no-open", "--port", str(port)]
    with running([*command, "--max_sentences", "54", "--max_characters", "80000"], port) as server:
        from gradio_client import Client

        client = Client(server.address, verbose=False, httpx_kwargs={"timeout": 600})
        assert client.predict("It rained. " * 54, api_name="/endings")
        with pytest.raises(Exception, match="55 sentences, more than 54: shorten it, or raise `max_sentences`."):
            client.predict("It rained. " * 55, api_name="/endings")
        status, _ = post(server, "/gradio_api/call/endings", call(story), {"Content-Type": "application/json"})
        assert len(story) > MAX_BODY_BYTES and status == 200


def test_a_space_has_limits_of_its_own(tmp_path):
    with pytest.raises(ValueError, match="Limits of stories are not for `space`: change `LIMITS` in its app.py."):
        DemoOptions(space_dir=str(tmp_path / "space"), max_sentences=20)


def test_the_queue_and_the_files_are_bounded(model_directory):
    demo = build_demo([model_directory])
    assert demo._queue.max_size == MAX_QUEUE
    assert demo.delete_cache == CACHE_SECONDS
    for kept in (demo._queue.pending_messages_per_session, demo._queue.pending_event_ids_session):
        for number in range(2 * MAX_SESSIONS):
            kept[f"session {number}"] = set()
            # One that is in use stays, however many come and go.
            assert "session 0" in kept and kept["session 0"] == set()
        assert len(kept) == MAX_SESSIONS and f"session {number}" in kept and "session 5" not in kept


def test_models_are_asked_through_the_queue_alone(model_directory):
    assert not build_demo([model_directory]).api_open


def memory_of(process) -> int:
    """Kilobytes that a process has in memory."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="Linux tells how much memory a process has.")
def test_memory_is_flat_over_two_thousand_requests_and_half_an_hour(server):
    """Requests are spread over the time: caches that are cleaned by the clock are cleaned often enough, too."""
    from gradio_client import Client

    client = Client(server.address, verbose=False, httpx_kwargs={"timeout": 600})
    seen = []
    start = time.monotonic()
    for number in range(NUM_REQUESTS):
        # No request comes before its time; a slow machine only takes longer.
        time.sleep(max(0.0, start + number * WATCHED_SECONDS / NUM_REQUESTS - time.monotonic()))
        client.predict(f"{STORY} It was number {number}.", api_name="/endings")
        if number % 250 == 249:
            seen.append(memory_of(server.process))
            sys.stdout.write(f"{number + 1} requests, {time.monotonic() - start:.0f} s: {seen[-1]} kB\n")
    # The first quarter fills caches.
    assert max(seen[2:]) - seen[1] < 25_000, seen


def test_cached_requests_are_bounded(model_directory):
    generator = EndingGenerator([model_directory])
    for number in range(40):
        generator.generate(EndingRequest(generator.systems[0], parse_story(f"{STORY} It was number {number}.")))
    assert generator.generate.cache_info().currsize <= 32
