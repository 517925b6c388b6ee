"""Human evaluation in two steps: `create_sample` writes blinded sheets, `create_report` reads the scored ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .judgements import read_judgements
from .options import AnnotationReportOptions, AnnotationSampleOptions
from .report import build_report, write_report
from .sampling import Sample, SystemEndings, draw_sample, read_key, read_systems, reference_system
from .sheets import write_sample

# As in the paper.
_NUM_STORIES = 200


def create_sample(options: AnnotationSampleOptions | None = None) -> Sample:
    """Draw a sample of endings and write its key, sheets and page to `output_dir`."""
    options = options or AnnotationSampleOptions()
    systems = _load_systems(options)
    if options.references:
        systems.append(reference_system(systems[0]))
    num_stories = options.num_stories or min(_NUM_STORIES, len(systems[0].endings))
    sample = draw_sample(systems, num_stories, options.num_annotators, options.seed)
    write_sample(sample, Path(options.output_dir))
    return sample


def _load_systems(options: AnnotationSampleOptions) -> list[SystemEndings]:
    names = options.names or None
    if options.endings:
        return read_systems([Path(path) for path in options.endings], names)
    # Torch is needed only to generate endings.
    from ..evaluation.run import endings_files

    with endings_files((), max_stories=options.num_stories or _NUM_STORIES) as paths:
        return read_systems(paths, names)


def create_report(options: AnnotationReportOptions | None = None) -> dict[str, Any]:
    """Read the key and the scored sheets, and return the report; write it to `output_dir`, if there is one."""
    options = options or AnnotationReportOptions()
    key = Path(options.key)
    sample = read_key(key)
    sheets = [Path(path) for path in (*options.sheets, *options.more_sheets)]
    sheets = sheets or sorted((key.parent / "sheets").glob("*.csv"))
    report = build_report(sample, read_judgements(sample, sheets))
    if options.output_dir is not None:
        write_report(report, Path(options.output_dir))
    return report
