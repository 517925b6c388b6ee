"""Human evaluation: blinded samples of endings for annotators, and what their scores say."""

from .report import build_report
from .report_page import describe_report, draw_scores
from .sampling import Sample, SystemEndings, draw_sample, read_key, read_systems, reference_system
from .sheets import Judgement, read_judgements, write_sample

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
