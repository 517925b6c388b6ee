"""Options of `storyend export`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..options import option


@dataclass
class ExportOptions:
    """What to export, and where to."""

    output_dir: str = option(help="Directory of the exported files; it is created.")
    model: str | None = option(None, "Model directory or Hub name; default: the model that comes with the package.")
    format: Literal["onnx"] = option("onnx", "Format of the files.")
    int8: bool = option(False, "Store weights in int8: smaller and faster files, slightly other endings.")
