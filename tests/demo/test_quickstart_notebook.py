"""The notebook runs as it is, from top to bottom, and stores no output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("IPython", reason="ipython is not installed")
pytest.importorskip("gradio", reason="gradio is not installed")

NOTEBOOK = Path(__file__).parent.parent.parent / "examples" / "quickstart.ipynb"
RUN = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic = lambda name, *rest, **more: sys.exit(f"%{name} was run")
for cell in json.load(open(sys.argv[1]))["cells"]:
    if cell["cell_type"] == "code":
        shell.run_cell("".join(cell["source"])).raise_error()
"""


def test_every_cell_runs_and_nothing_is_installed(tmp_path):
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "IPYTHONDIR": str(tmp_path)}
    command = [sys.executable, "-c", RUN, str(NOTEBOOK)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr
    assert "before:" in done.stdout and "http://127.0.0.1:" in done.stdout
    assert (tmp_path / "clues.svg").is_file() and (tmp_path / "attention.svg").is_file()


def test_it_is_a_notebook_without_outputs():
    content = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert (content["nbformat"], content["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in content["cells"]}) == len(content["cells"])
    code = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
    assert code and all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert "%pip install" in "".join(code[0]["source"])
