"""Systems are named after their files, or after the directories that tell those apart."""

from pathlib import Path

import pytest

from hf_storyend.evaluation.naming import name_systems


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["ie.jsonl", "out/seq2seq.txt"], ["ie", "seq2seq"]),
        (["ie/endings.jsonl", "seq2seq/endings.jsonl"], ["ie", "seq2seq"]),
        (["a/ie/test/endings.jsonl", "a/seq2seq/test/endings.jsonl"], ["ie", "seq2seq"]),
        (["same.txt", "same.txt"], ["same", "same"]),
    ],
)
def test_names(paths, names):
    assert name_systems([Path(path) for path in paths]) == names
