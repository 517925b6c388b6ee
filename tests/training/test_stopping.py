"""Signals, exit codes and messages of a program."""

import logging
import os
import signal

import pytest

from hf_storyend.training import NonFiniteLoss, TrainingInterrupted, run_as_program
from hf_storyend.training.stopping import StopSignals, log_to_terminal


@pytest.fixture(autouse=True)
def package_logger():
    """The package's logger as it was, afterwards."""
    logger = logging.getLogger("hf_storyend")
    handlers, level = logger.handlers[:], logger.level
    yield logger
    logger.handlers, logger.level = handlers, level


@pytest.fixture
def interruptible():
    """Shells start background jobs with SIGINT ignored."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


def test_the_first_signal_is_recorded_and_the_second_has_its_usual_effect(interruptible):
    with StopSignals() as signals:
        assert signals.received == 0
        os.kill(os.getpid(), signal.SIGINT)
        assert signals.received == signal.SIGINT
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (ValueError("`seed` is wrong"), 2, "Error: `seed` is wrong"),
        (OSError("disk full"), 2, "Error: disk full"),
        (NonFiniteLoss("loss nan"), 2, "Error: loss nan"),
        (
            TrainingInterrupted(signal.SIGTERM, 7, "run"),
            143,
            "Stopped by SIGTERM after 7 updates. The checkpoint is in",
        ),
    ],
)
def test_errors_end_in_a_message_and_an_exit_code(capsys, error, code, message):
    def main() -> None:
        raise error

    with pytest.raises(SystemExit) as stop:
        run_as_program(main)
    assert stop.value.code == code and message in capsys.readouterr().err


def test_other_errors_are_raised():
    def main() -> None:
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        run_as_program(main)


def test_logging_that_is_configured_is_left_alone(package_logger, monkeypatch):
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    package_logger.handlers = []
    log_to_terminal()
    log_to_terminal()
    assert len(package_logger.handlers) == 1 and package_logger.level == logging.INFO
    package_logger.handlers, package_logger.level = [], logging.NOTSET
    monkeypatch.setattr(logging.getLogger(), "handlers", [logging.NullHandler()])
    log_to_terminal()
    assert not package_logger.handlers and package_logger.level == logging.NOTSET
