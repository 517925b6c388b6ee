"""A page to try the models on: a story in, endings and the evidence behind them out."""

from .app import build_demo, launch_demo
from .handlers import EndingWriter, WrittenEndings
from .requests import EndingRequest, OwnTriple
from .space import write_space

__all__ = [
    "EndingRequest",
    "EndingWriter",
    "OwnTriple",
    "WrittenEndings",
    "build_demo",
    "launch_demo",
    "write_space",
]
