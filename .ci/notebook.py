"""Run examples/quickstart.ipynb from top to bottom and store it with its outputs.

pip install nbclient ipykernel && python .ci/notebook.py
"""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parent.parent / "examples" / "quickstart.ipynb"


def main() -> None:
    # Bars of loading are for those who wait.
    os.environ |= {"TQDM_DISABLE": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_OFFLINE": "1"}
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    with TemporaryDirectory() as folder:
        # A cell writes pictures; they are not to stay.
        client = NotebookClient(notebook, timeout=1800, resources={"metadata": {"path": folder}})
        client.execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            # Warnings are about this machine.
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    notebook.metadata.language_info = {"name": "python"}
    nbformat.write(notebook, NOTEBOOK)


if __name__ == "__main__":
    main()
