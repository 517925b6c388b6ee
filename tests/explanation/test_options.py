"""Options of `storyend explain` are checked when they are made."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hf_storyend.explanation.options import ExplainOptions, parse_triples


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"story": "my_model"}, "`story` is a single word, 'my_model'"),
        ({"formats": ("png",)}, "no `output_dir`"),
        ({"formats": ("gif",), "output_dir": "why"}, "some of json, md, html, svg, png; got \\['gif'\\]"),
        ({"triples": ("oven",)}, "`triples` must be `head,Relation,tail`.*; got 'oven'"),
        ({"without_triples": ("oven,,cake",)}, "`without_triples` must be `head,Relation,tail`"),
        ({"num_beams": 0}, "`num_beams` must be a whole number of at least 1; got 0"),
        ({"attention_top_k": 0}, "`attention_top_k` must be a whole number of at least 1; got 0"),
    ],
)
def test_invalid_options_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        ExplainOptions(**settings)


def test_only_given_changes_count():
    assert ExplainOptions().changes() == {}
    options = ExplainOptions(triples=("oven, Causes, smoke",), without_sentence=0)
    assert options.changes() == {"without_sentence": 0, "with_triples": [("oven", "Causes", "smoke")]}


def test_triples_are_stripped():
    assert parse_triples("triples", [" a , b,c "]) == [("a", "b", "c")]


@pytest.mark.parametrize("package", ["explanation", "demo"])
def test_options_import_no_torch(package):
    """`storyend --help` reads them."""
    code = f"import sys, hf_storyend.{package}.options; assert not {{'torch', 'transformers'}} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
