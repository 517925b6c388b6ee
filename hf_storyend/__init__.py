"""
Story endings by incremental encoding and commonsense knowledge, as a transformers plugin.

Importing the package costs nothing; torch and transformers are imported with the first name that is used. From then on
transformers' Auto classes know the classes of this package: see `register`.
"""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as _version
from typing import TYPE_CHECKING, Any

from .lazy import lazy_exports as _lazy_exports

if TYPE_CHECKING:
    from .data.prepare import prepare
    from .evaluation.run import evaluate
    from .explanation.explain_story import explain
    from .modeling import (
        EndingGenerationOutput,
        IncrementalEncoderConfig,
        IncrementalEncoderForEndingGeneration,
        IncrementalEncoderTokenizer,
        KnowledgeTable,
        StoryEndingPipeline,
    )
    from .pretrained import default_model, generate, load, pipeline, register
    from .training import train

try:
    __version__ = _version("hf_storyend")
except PackageNotFoundError:
    # A copy of the package that was not installed, as in a Space.
    __version__ = "unknown"

_exported, __dir__, _names = _lazy_exports(
    __name__,
    {
        **dict.fromkeys(
            (
                "EndingGenerationOutput",
                "IncrementalEncoderConfig",
                "IncrementalEncoderForEndingGeneration",
                "IncrementalEncoderTokenizer",
                "KnowledgeTable",
                "StoryEndingPipeline",
            ),
            ".modeling",
        ),
        **dict.fromkeys(("default_model", "generate", "load", "pipeline", "register"), ".pretrained"),
        "evaluate": ".evaluation",
        "explain": ".explanation",
        "prepare": ".data.prepare",
        "train": ".training",
    },
)
__all__ = [*_names, "__version__"]


def __getattr__(name: str) -> Any:
    value = _exported(name)
    from .pretrained import register

    register()
    return value


if "transformers" in sys.modules:
    from .pretrained import register

    register()
