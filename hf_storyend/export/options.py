"""Options of `storyend export`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..options import REQUIRED, option


@dataclass(frozen=True)
class ExportOptions:
    """Options of `storyend export`: what, in which format and precision, and where to."""

    output_dir: str = option(REQUIRED, "Directory of the exported files; created if it does not exist.")
    model: str | None = option(
        None, "Model directory or Hub name; default: the model that comes with the package.", positional=True
    )
    format: Literal["onnx"] = option("onnx", "Format of the files.")
    int8: bool = option(False, "Store weights in int8: smaller files, slightly different endings.")
