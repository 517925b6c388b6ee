"""Endings of a file of stories: read as a stream, written in batches, resumed where an interrupted run stopped."""

from typing import TYPE_CHECKING

from ..lazy import lazy_exports

if TYPE_CHECKING:
    from .input_files import InputStory, stream_stories
    from .run import FileReport, GenerationSettings, generate_file

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "FileReport": ".run",
        "GenerationSettings": ".run",
        "InputStory": ".input_files",
        "generate_file": ".run",
        "stream_stories": ".input_files",
    },
)
