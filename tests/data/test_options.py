"""Options of `prepare` are checked and normalised when they are made, without importing torch."""

import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

from hf_storyend.data.options import DEFAULT_MIN_LIFT, POLICIES, PrepareOptions
from hf_storyend.knowledge import selection
from hf_storyend.knowledge.selection import Policy


def test_paths_lists_and_none_are_normalised():
    options = PrepareOptions(
        output_dir=Path("out"),
        stories=Path("a.csv"),
        conceptnet=[Path("b.csv")],
        relations=["IsA"],
        glove=Path("c.txt"),
        knowledge="none",
    )
    assert (options.output_dir, options.stories, options.glove) == ("out", "a.csv", "c.txt")
    assert (options.conceptnet, options.relations, options.knowledge) == (("b.csv",), ("IsA",), None)
    assert PrepareOptions(conceptnet="b.csv").conceptnet == ("b.csv",)


def test_content_is_what_determines_the_result():
    elsewhere = PrepareOptions(output_dir="elsewhere", overwrite=True, num_proc=2)
    assert elsewhere.content() == PrepareOptions().content()
    assert PrepareOptions(seed=1).content() != PrepareOptions().content()


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("max_triples", 0, "`max_triples` must be a whole number of at least 1; got 0"),
        ("hidden_size", 1.5, "`hidden_size` must be a whole number"),
        ("num_layers", True, "`num_layers` must be a whole number"),
        ("embedding_size", 0, "`embedding_size` must be a whole number"),
        ("num_train", 0, "`num_train` must be a whole number"),
        ("num_proc", 0, "`num_proc` must be a whole number"),
        ("vocab_size", 4, "`vocab_size` must be a whole number of at least 5; got 4"),
        ("policy", "best", "`policy` must be one of 'weight', 'tail_frequency'.*'story_lift'; got 'best'"),
        ("knowledge", "graph", "`knowledge` must be one of 'graph_attention'.*got 'graph'"),
    ],
)
def test_bad_values(option: str, value: Any, message: str):
    with pytest.raises(ValueError, match=message):
        PrepareOptions(**{option: value})


@pytest.mark.parametrize("option", ["min_weight", "inverse", "symmetric", "multi_word", "relations"])
def test_options_that_would_do_nothing_are_refused(option: str):
    value = {"min_weight": 1.5, "relations": ("IsA",)}.get(option, True)
    with pytest.raises(ValueError, match=f"`{option}` is about triples.*`conceptnet`"):
        PrepareOptions(stories="stories.jsonl", **{option: value})


def test_embedded_triples_have_no_weights():
    with pytest.raises(ValueError, match="`min_weight` is about triples"):
        PrepareOptions(min_weight=1.5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_lift": 2.0}, "`min_lift` is about the policy `story_lift`; got `policy` 'weight_and_frequency'"),
        ({"policy": "story_lift", "min_lift": 0.5}, "`min_lift` must be at least 1; got 0.5"),
        ({"policy": "story_lift", "inverse": True}, "`inverse` has no effect with the policy `story_lift`"),
        ({"policy": "story_lift", "symmetric": True}, "`symmetric` has no effect"),
        ({"policy": "story_lift", "multi_word": True}, "`multi_word` has no effect"),
        ({"policy": "story_lift", "stories": "stories.jsonl"}, "`policy` is `story_lift`, but there are no triples"),
    ],
)
def test_options_of_other_policies_are_refused(options: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        PrepareOptions(**options)


def test_story_lift_takes_a_minimum():
    assert PrepareOptions(policy="story_lift", min_lift=2.0).min_lift == 2.0


def test_policies_are_those_of_the_selection():
    assert (*get_args(Policy), selection.STORY_LIFT) == POLICIES
    assert DEFAULT_MIN_LIFT == selection.DEFAULT_MIN_LIFT


def test_options_import_no_heavy_library():
    code = "import sys, hf_storyend.data.options; assert not {'torch', 'transformers', 'datasets'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
