"""The `storyend demo` command: what it starts, and what it says if it can't."""

from __future__ import annotations

import sys

import pytest
from typer.testing import CliRunner

from hf_storyend.cli.main import app
from hf_storyend.demo.options import StoryLimits


class Page:
    """Stands for the started page."""

    was_waited_for = False

    def block_thread(self):
        self.was_waited_for = True


@pytest.fixture
def launched(monkeypatch):
    calls, page = [], Page()

    def launch_demo(models, **settings):
        calls.append((tuple(models), settings))
        return page, "http://127.0.0.1:7860/"

    monkeypatch.setattr("hf_storyend.demo.app.launch_demo", launch_demo)
    return calls, page


def test_default_options(launched):
    calls, page = launched
    result = CliRunner().invoke(app, ["demo"], catch_exceptions=False)
    assert "http://127.0.0.1:7860/" in result.stdout and page.was_waited_for
    assert calls == [
        ((), {"host": "127.0.0.1", "port": None, "share": False, "open_browser": True, "limits": StoryLimits()})
    ]


def test_models_and_options_are_passed_on(launched):
    arguments = ["demo", "one", "me/two", "--port", "8000", "--host", "0.0.0.0", "--share", "--no-open"]
    CliRunner().invoke(app, arguments, catch_exceptions=False)
    expected = {"host": "0.0.0.0", "port": 8000, "share": True, "open_browser": False, "limits": StoryLimits()}
    assert launched[0] == [(("one", "me/two"), expected)]


def test_without_gradio_one_sentence_says_what_to_install(monkeypatch, model_directory):
    monkeypatch.setitem(sys.modules, "gradio", None)
    result = CliRunner().invoke(app, ["demo", model_directory])
    assert isinstance(result.exception, ImportError)
    assert str(result.exception) == 'The demo needs gradio. Install it with `pip install "hf_storyend[demo]"`.'
