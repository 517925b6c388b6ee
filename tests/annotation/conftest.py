"""A small sample, and sheets that somebody has filled in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from annotation.synthetic import ENDINGS, write_endings

from hf_storyend.annotation import Sample, draw_sample, read_systems
from hf_storyend.annotation.sheets import sheet_name, write_sheet


@pytest.fixture
def endings(tmp_path) -> list[Path]:
    return write_endings(tmp_path, ENDINGS)


@pytest.fixture
def sample(endings) -> Sample:
    return draw_sample(read_systems(endings), num_stories=4)


@pytest.fixture
def fill(tmp_path) -> Callable[[Sample, Callable[[int, str, int], str]], list[Path]]:
    """
    Sheets of all annotators with the scores a function gives: of annotator, system and the place of the story in the
    sample, `"21"` for grammar 2 and logicality 1, or `"11 other"` with the kind of error.
    """

    def filled(sample: Sample, judge: Callable[[int, str, int], str]) -> list[Path]:
        paths = []
        for annotator in range(1, sample.num_annotators + 1):
            answers: dict[str, dict[str, str]] = {}
            for item in sample.items:
                scores, _, error_type = judge(annotator, item.system, item.story).partition(" ")
                answers[item.id] = {"grammar": scores[:1], "logicality": scores[1:], "error_type": error_type}
            paths.append(tmp_path / sheet_name(annotator))
            write_sheet(paths[-1], sample, annotator, answers)
        return paths

    return filled
