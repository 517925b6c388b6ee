"""The `storyend` command in this process."""

import sys

import pytest

from hf_storyend.cli.main import main


@pytest.fixture
def storyend(capsys, monkeypatch, tmp_path, wide_terminal):
    """Runs a command in an empty directory and returns what it printed on both streams."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments, code=0):
        monkeypatch.setattr(sys, "argv", ["storyend", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        assert ended.value.code == code, printed.err
        return printed

    return run
