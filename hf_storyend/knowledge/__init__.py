"""
Commonsense knowledge: from ConceptNet to the table of triples that a tokenizer carries.

`read_edges` reads files, `build_knowledge_table` selects the triples of a vocabulary.
"""

from typing import TYPE_CHECKING

from ..lazy import lazy_exports

if TYPE_CHECKING:
    from .build import build_knowledge_table
    from .conceptnet import read_edges
    from .edges import Edge, ReadReport
    from .relations import SYMMETRIC_RELATIONS
    from .selection import Policy
    from .statistics import describe_statistics

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "SYMMETRIC_RELATIONS": ".relations",
        "Edge": ".edges",
        "Policy": ".selection",
        "ReadReport": ".edges",
        "build_knowledge_table": ".build",
        "describe_statistics": ".statistics",
        "read_edges": ".conceptnet",
    },
)
