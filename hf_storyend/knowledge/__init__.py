"""From ConceptNet to the table of triples that a tokenizer carries."""

from .build import SYMMETRIC_RELATIONS, build_knowledge_table
from .conceptnet import read_edges
from .edge_lines import Edge
from .read_report import ReadReport
from .selection import Policy
from .statistics import describe

__all__ = [
    "SYMMETRIC_RELATIONS",
    "Edge",
    "Policy",
    "ReadReport",
    "build_knowledge_table",
    "describe",
    "read_edges",
]
