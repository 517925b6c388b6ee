"""`storyend demo` as users meet it: a process that answers many of them over HTTP."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("gradio", reason="gradio is not installed")

from demo.demo_server import running_demo  # noqa: E402
from gradio_client import Client  # noqa: E402
from gradio_client.exceptions import AppError  # noqa: E402

STORY = "Anna put a cake in the oven. The cake in the oven was burnt."


@pytest.fixture(scope="module")
def server(model_folder, plain_folder):
    with running_demo([model_folder, plain_folder]) as server:
        yield server


def test_the_page_names_no_address_but_its_own_that_would_be_fetched(server):
    page = server.get()
    assert "Story endings, and why" in page
    fetched = re.findall(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=[\"']?(https?://[^\"' >]+)", page)
    assert [address for address in fetched if not address.startswith(server.address)] == []
    assert "fonts.googleapis" not in page


def test_settings_of_the_page_record_nothing(server):
    settings = json.loads(server.get("config"))
    assert settings["analytics_enabled"] is False
    assert not settings.get("run_history")


def test_a_program_gets_endings_and_sentences_about_mistakes(server):
    client = Client(server.address, verbose=False)
    (ending,) = client.predict(STORY, api_name="/endings")
    assert ending["words"][0]["words"][0]["sentence"] == 2
    other = client.predict(STORY, system="plain (hlstm-copy)", mode="samples", num_endings=3, api_name="/endings")
    assert len(other) == 3
    with pytest.raises(AppError, match="^The story is empty: write a sentence or two.$"):
        client.predict(" ", api_name="/endings")
    with pytest.raises(AppError, match="^Triple 2 must be"):
        client.predict(STORY, [["oven", "UsedFor", "cake"], ["oven"]], api_name="/endings")


def test_sixty_four_users_at_the_same_time_all_get_their_answer(server):
    def visit(user):
        # A busy machine may need longer than the five seconds that it waits by default.
        client = Client(server.address, verbose=False, httpx_kwargs={"timeout": 120})
        settings = {"mode": "samples", "num_endings": 2, "seed": user % 8}
        return user % 8, [found["ending"] for found in client.predict(STORY, **settings, api_name="/endings")]

    with ThreadPoolExecutor(64) as pool:
        answers = list(pool.map(visit, range(64)))
    by_seed = dict(answers)
    assert len(answers) == 64 and len(by_seed) == 8
    assert all(by_seed[seed] == endings for seed, endings in answers)


def test_a_port_that_is_taken_is_an_error_of_one_line(server, model_folder):
    port = server.address.rstrip("/").rsplit(":", 1)[1]
    command = [sys.executable, "-m", "hf_storyend.cli.main", "demo", model_folder, "--no-open", "--port", port]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180)
    assert done.returncode == 2
    assert done.stderr.startswith(f"Error: Port {port} can't be used") and len(done.stderr.splitlines()) == 1
