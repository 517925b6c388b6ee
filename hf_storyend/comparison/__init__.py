"""Comparison of systems: each is trained under the same budget and evaluated, into one table beside the paper's."""

from typing import TYPE_CHECKING

from ..lazy import lazy_exports

if TYPE_CHECKING:
    from .claims import check_claims, render_claims
    from .endings import read_published_endings
    from .options import ComparisonOptions
    from .publish import publish_comparison
    from .rows import Row
    from .run import compare
    from .table import markdown_table

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "ComparisonOptions": ".options",
        "Row": ".rows",
        "check_claims": ".claims",
        "compare": ".run",
        "markdown_table": ".table",
        "publish_comparison": ".publish",
        "read_published_endings": ".endings",
        "render_claims": ".claims",
    },
)
