"""Shells in folders that hold what a document takes for granted, beside a Hub on loopback."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from documents.shells import BashShell, WarmServer, WarmShell, shell_environment
from documents.surroundings import link_scripts, write_raw_files, write_trained_files
from hub.hub_server import MY_TOKEN, Hub, serve_hub


@pytest.fixture(scope="session")
def loopback_hub() -> Iterator[Hub]:
    with serve_hub() as hub:
        yield hub


@pytest.fixture(scope="session")
def environment(loopback_hub, tmp_path_factory) -> dict[str, str]:
    home = tmp_path_factory.mktemp("home")
    return shell_environment(
        HF_ENDPOINT=loopback_hub.url, HF_TOKEN=MY_TOKEN, HF_HUB_DISABLE_XET="1", HF_HOME=str(home), HOME=str(home)
    )


@pytest.fixture(scope="session")
def warm_server(environment) -> Iterator[WarmServer]:
    server = WarmServer.start(environment)
    yield server
    server.process.communicate()


@pytest.fixture(scope="session")
def raw_files(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("raw")
    write_raw_files(folder)
    link_scripts(folder)
    return folder


@pytest.fixture(scope="session")
def trained_files(raw_files, tmp_path_factory) -> Path:
    """All that commands of a document may name; README starts without, and makes what it needs."""
    folder = tmp_path_factory.mktemp("trained") / "all"
    shutil.copytree(raw_files, folder, symlinks=True)
    write_trained_files(folder)
    return folder


@pytest.fixture(autouse=True)
def empty_hub(loopback_hub) -> None:
    """What one document pushed is not there for the next."""
    loopback_hub.repos.clear()


@pytest.fixture
def surroundings(raw_files, request) -> Callable[[str], Path]:
    """The folder to start a document from."""
    return lambda document: raw_files if document == "README.md" else request.getfixturevalue("trained_files")


@pytest.fixture
def warm_shell(surroundings, warm_server, environment, tmp_path) -> Callable[[str], WarmShell]:
    return lambda document: WarmShell(_copy(surroundings(document), tmp_path), environment, server=warm_server)


@pytest.fixture
def bash_shell(surroundings, environment, tmp_path) -> Callable[[str], BashShell]:
    return lambda document: BashShell(_copy(surroundings(document), tmp_path), environment)


def _copy(source: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(source, tmp_path / "folder", symlinks=True))
