"""The notebook runs as it is, from top to bottom, and its outputs are stored with it."""

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


def code_cells() -> list[dict]:
    return [cell for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]


def printed(cell: dict) -> str:
    return "".join("".join(output["text"]) for output in cell["outputs"] if output["output_type"] == "stream")


def test_every_cell_runs_and_prints_what_is_stored(tmp_path):
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "IPYTHONDIR": str(tmp_path)}
    command = [sys.executable, "-c", RUN, str(NOTEBOOK)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr
    assert "before:" in done.stdout and "http://127.0.0.1:" in done.stdout
    assert (tmp_path / "clues.svg").is_file() and (tmp_path / "attention.svg").is_file()
    # The last cell prints the address of a server.
    for cell in code_cells()[:-1]:
        assert printed(cell) in done.stdout, "out of date: python .ci/notebook.py"


def test_outputs_are_stored_in_order_and_say_nothing_of_a_machine():
    content = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert (content["nbformat"], content["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in content["cells"]}) == len(content["cells"])
    code = code_cells()
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert "%pip install" in "".join(code[0]["source"]) and not code[0]["outputs"]
    outputs = [output for cell in code for output in cell["outputs"]]
    assert all(cell["outputs"] for cell in code[1:])
    assert not [output for output in outputs if output["output_type"] == "error" or output.get("name") == "stderr"]
    kinds = {kind for output in outputs for kind in output.get("data", {})}
    assert {"text/html", "image/svg+xml"} <= kinds
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert "site-packages" not in text and "/home/" not in text and "/root/" not in text
