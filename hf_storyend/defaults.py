"""The model that comes with the package."""

from __future__ import annotations

from pathlib import Path


def default_model() -> str:
    """
    The directory of the model that comes with the package, for `from_pretrained`.

    ```python
    >>> model = IncrementalEncoderForEndingGeneration.from_pretrained(hf_storyend.default_model())
    ```
    """
    directory = Path(__file__).parent / "assets" / "default_model"
    if not (directory / "model.safetensors").is_file():
        raise OSError(f"{directory} has no model: this copy of hf_storyend was made without it. Install it anew.")
    return str(directory)
