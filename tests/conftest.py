"""Shared fixtures: a small tokenizer with knowledge, a model that fits it, and a browser."""

import shutil

import pytest
import torch
from hypothesis import settings
from small_tokenizer import small_tokenizer

from hf_storyend import (
    IncrementalEncoderConfig,
    IncrementalEncoderForEndingGeneration,
    IncrementalEncoderTokenizer,
)

# No test depends on the wall clock.
settings.register_profile("tests", deadline=None)
settings.load_profile("tests")


@pytest.fixture(autouse=True)
def one_thread():
    """Tests run side by side; threads of one model would wait for those of another."""
    torch.set_num_threads(1)


@pytest.fixture
def wide_terminal(monkeypatch):
    """Tables are printed without line breaks. (`datasets` replaces `os.environ`, so a variable might not be seen.)"""
    monkeypatch.setattr("rich.console.Console._environ", {"COLUMNS": "240"})


@pytest.fixture
def tokenizer() -> IncrementalEncoderTokenizer:
    return small_tokenizer()


@pytest.fixture
def model(tokenizer) -> IncrementalEncoderForEndingGeneration:
    torch.manual_seed(0)
    config = IncrementalEncoderConfig.for_tokenizer(tokenizer, embedding_size=8, hidden_size=12)
    return IncrementalEncoderForEndingGeneration(config).eval()


@pytest.fixture(scope="module")
def chromium():
    """A real browser without a window."""
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (browser and driver):
        pytest.skip("no Chromium here: apt-get install chromium chromium-driver")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    # Containers have neither user namespaces for its sandbox nor much shared memory.
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1200,1000"):
        options.add_argument(argument)
    options.binary_location = browser
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    window = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield window
    window.quit()
