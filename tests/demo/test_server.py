"""`storyend demo` as a process that answers many users over HTTP."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.error
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("gradio", reason="gradio is not installed")

from demo.demo_server import running_demo  # noqa: E402
from gradio_client import Client  # noqa: E402
from gradio_client.exceptions import AppError  # noqa: E402

STORY = "Anna put a cake in the oven. The cake in the oven was burnt."


@pytest.fixture(scope="module")
def server(model_directory, copying_directory):
    with running_demo([model_directory, copying_directory]) as server:
        yield server


def test_the_page_fetches_nothing_from_elsewhere(server):
    page = server.get()
    assert "Story endings, and why" in page
    fetched = re.findall(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=[\"']?(https?://[^\"' >]+)", page)
    assert [address for address in fetched if not address.startswith(server.address)] == []
    assert "fonts.googleapis" not in page


def test_nothing_is_recorded(server):
    settings = json.loads(server.get("config"))
    assert settings["analytics_enabled"] is False
    assert not settings.get("run_history")


def test_card_and_code_are_pages_beside_the_demo(server):
    cards, code = server.get("card"), server.get("code")
    assert 'href="card/0"' in cards and "copying (hlstm-copy)" in cards and "no card" in server.get("card/0")
    assert code.index("modeling_incremental_encoder.py") < code.index("baselines.py")
    assert server.get("code/baselines.py").startswith("# Copyright")
    for path in ("card/2", "code/setup.py", "code/..%2Fpretrained.py", "code/__init__"):
        with pytest.raises(urllib.error.HTTPError, match="404"):
            server.get(path)


def test_a_program_gets_endings_and_error_messages(server):
    client = Client(server.address, verbose=False)
    (ending,) = client.predict(STORY, api_name="/endings")
    assert ending["words"][0]["state_attention"][0]["sentence"] == 2
    other = client.predict(
        STORY, system="copying (hlstm-copy)", decoding="sampling", num_endings=3, api_name="/endings"
    )
    assert len(other) == 3
    with pytest.raises(AppError, match="^The story is empty: write a sentence or two.$"):
        client.predict(" ", api_name="/endings")
    with pytest.raises(AppError, match="^Triple 2 must be"):
        client.predict(STORY, [["oven", "UsedFor", "cake"], ["oven"]], api_name="/endings")


def test_64_concurrent_users_get_their_answers(server):
    def visit(user):
        # A busy machine may need longer than the default of five seconds.
        client = Client(server.address, verbose=False, httpx_kwargs={"timeout": 600})
        settings = {"decoding": "sampling", "num_endings": 2, "seed": user % 8}
        return user % 8, [found["ending"] for found in client.predict(STORY, **settings, api_name="/endings")]

    with ThreadPoolExecutor(64) as pool:
        answers = list(pool.map(visit, range(64)))
    by_seed = dict(answers)
    assert len(answers) == 64 and len(by_seed) == 8
    assert all(by_seed[seed] == endings for seed, endings in answers)


def test_a_port_in_use_is_an_error_of_one_line(server, model_directory):
    port = server.address.rstrip("/").rsplit(":", 1)[1]
    command = [sys.executable, "-m", "hf_storyend.cli.main", "demo", model_directory, "--no-open", "--port", port]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 2
    assert done.stderr.startswith(f"Error: Port {port} can't be used") and len(done.stderr.splitlines()) == 1
