"""Human evaluation: blinded sheets of endings for annotators, and the statistics of their scores."""

from typing import TYPE_CHECKING

from ..lazy import lazy_exports

if TYPE_CHECKING:
    from .judgements import Judgement, read_judgements
    from .options import AnnotationReportOptions, AnnotationSampleOptions
    from .report import build_report, describe_report, draw_scores, report_json
    from .run import create_report, create_sample
    from .sampling import Sample, SystemEndings, draw_sample, read_key, read_systems, reference_system
    from .sheets import write_sample

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "AnnotationReportOptions": ".options",
        "AnnotationSampleOptions": ".options",
        "Judgement": ".judgements",
        "Sample": ".sampling",
        "SystemEndings": ".sampling",
        "build_report": ".report",
        "create_report": ".run",
        "create_sample": ".run",
        "describe_report": ".report",
        "draw_sample": ".sampling",
        "draw_scores": ".report",
        "read_judgements": ".judgements",
        "read_key": ".sampling",
        "read_systems": ".sampling",
        "reference_system": ".sampling",
        "report_json": ".report",
        "write_sample": ".sheets",
    },
)
