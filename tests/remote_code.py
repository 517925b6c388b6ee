"""Loading a saved model in a process where the package does not exist."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

STORY = "Anna put a cake in the oven. They watched a long film."
WITHOUT_PACKAGE = """
import importlib.abc, json, sys

class Hidden(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("hf_storyend", "modeling"):
            raise ModuleNotFoundError(f"No module named {name!r}")

sys.meta_path.insert(0, Hidden())
from transformers import AutoConfig, AutoModel, AutoModelForSeq2SeqLM, AutoTokenizer
"""


def run(code: str, *arguments: str, home: Path) -> subprocess.CompletedProcess:
    # Isolated (-I): neither the working directory nor PYTHONPATH can bring the package back.
    environment = {**os.environ, "HF_HOME": str(home), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-I", "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL)
