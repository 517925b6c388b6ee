"""Systems trained and evaluated under one equal budget, in one table."""

from .compare import ComparisonOptions, compare

__all__ = ["ComparisonOptions", "compare"]
