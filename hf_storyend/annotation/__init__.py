"""Human evaluation: blinded samples of endings for annotators, and what their scores say."""

from .chart import draw_scores
from .endings import SystemEndings, read_systems, reference_system
from .judgements import Judgement, read_judgements
from .report import build_report
from .report_page import describe_report
from .sample_directory import write_sample
from .sampling import Sample, draw_sample, read_key

__all__ = [
    "Judgement",
    "Sample",
    "SystemEndings",
    "build_report",
    "describe_report",
    "draw_sample",
    "draw_scores",
    "read_judgements",
    "read_key",
    "read_systems",
    "reference_system",
    "write_sample",
]
