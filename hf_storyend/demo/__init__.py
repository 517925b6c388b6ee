"""A page to try the models on: a story in, endings and the evidence behind them out."""

from .app import build_demo
from .launching import launch_demo
from .requests import EndingRequest, OwnTriple
from .space import write_space
from .writing import EndingWriter, WrittenEndings

__all__ = [
    "EndingRequest",
    "EndingWriter",
    "OwnTriple",
    "WrittenEndings",
    "build_demo",
    "launch_demo",
    "write_space",
]
