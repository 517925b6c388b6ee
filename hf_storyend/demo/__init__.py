"""A demo in the browser: a story in, endings out, with the attention of each word, clues and the visitor's triples."""

from typing import TYPE_CHECKING

from ..lazy import lazy_exports

if TYPE_CHECKING:
    from .app import build_demo, launch_demo
    from .generator import EndingGenerator, GeneratedEndings
    from .options import DemoOptions, StoryLimits
    from .requests import EndingRequest, UserTriple
    from .space import write_space

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "DemoOptions": ".options",
        "EndingGenerator": ".generator",
        "EndingRequest": ".requests",
        "GeneratedEndings": ".generator",
        "StoryLimits": ".options",
        "UserTriple": ".requests",
        "build_demo": ".app",
        "launch_demo": ".app",
        "write_space": ".space",
    },
)
