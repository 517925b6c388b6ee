"""The two steps of a study from their options."""

import pytest
from annotation.sheet_rows import rewrite

from hf_storyend.annotation import (
    AnnotationReportOptions,
    AnnotationSampleOptions,
    create_report,
    create_sample,
    read_key,
)


def test_from_endings_to_report(endings, tmp_path):
    output = tmp_path / "human"
    sample = create_sample(
        AnnotationSampleOptions(endings=tuple(map(str, endings)), output_dir=str(output), num_stories=3)
    )
    assert sample == read_key(output / "key.json")
    assert len(sample.stories) == 3 and sample.systems == ("plain", "graph")
    for sheet in (output / "sheets").glob("*.csv"):
        rewrite(sheet, lambda rows: [row | {"grammar": "2", "logicality": "1"} for row in rows])
    report = create_report(AnnotationReportOptions(key=str(output / "key.json"), output_dir=str(tmp_path / "report")))
    assert report["systems"]["plain"]["grammar"]["mean"] == 2
    assert {path.name for path in (tmp_path / "report").iterdir()} == {"report.json", "report.md", "scores.png"}


def test_all_stories_are_sampled_if_there_are_fewer_than_in_the_paper(endings, tmp_path):
    options = AnnotationSampleOptions(
        endings=tuple(map(str, endings)), output_dir=str(tmp_path / "human"), names=("a", "b"), references=True
    )
    sample = create_sample(options)
    assert len(sample.stories) == 4 and sample.systems == ("a", "b", "reference")


def test_without_files_the_model_of_the_package_generates_endings(tmp_path):
    sample = create_sample(AnnotationSampleOptions(output_dir=str(tmp_path / "human"), num_stories=2))
    assert sample.systems == ("default_model",)
    assert len(sample.items) == 2


def test_numbers_out_of_range():
    with pytest.raises(ValueError, match="`num_stories` must be a whole number of at least 1; got 0"):
        AnnotationSampleOptions(num_stories=0)
    with pytest.raises(ValueError, match="`num_annotators` must be a whole number of at least 1; got 0"):
        AnnotationSampleOptions(num_annotators=0)
