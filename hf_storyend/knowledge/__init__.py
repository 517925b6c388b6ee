"""From ConceptNet to the table of triples that a tokenizer carries."""

from .build import SYMMETRIC_RELATIONS, Policy, build_knowledge_table, describe
from .conceptnet import read_edges
from .dump_reader import Edge, ReadReport

__all__ = [
    "SYMMETRIC_RELATIONS",
    "Edge",
    "Policy",
    "ReadReport",
    "build_knowledge_table",
    "describe",
    "read_edges",
]
