"""From raw files to a directory that training starts from."""

from .prepare import PreparationOptions, prepare

__all__ = ["PreparationOptions", "prepare"]
