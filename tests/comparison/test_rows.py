"""Names of rows: a system, a variant, a seed; and the options of a comparison."""

from dataclasses import replace

import pytest

from hf_storyend.comparison import ComparisonOptions, Row
from hf_storyend.systems import SYSTEMS
from hf_storyend.training import TrainingOptions


@pytest.mark.parametrize("name", ["ie", "ie.state", "hlstm-msa-ga.seed0", "ie-msa-ca.state.seed12"])
def test_the_name_of_a_row_is_read_as_it_is_written(name):
    assert Row.parse(name).name == name


def test_titles_are_the_papers_names():
    titles = [Row.parse(name).title for name in ("ie-msa-ca", "ie-copy", "ie.state.seed1")]
    assert titles == ["IE+MSA(CA)", "ie-copy", "IE, by the paper's equations, seed 1"]


def test_a_row_changes_system_variant_and_seed_of_the_options_and_nothing_else():
    training = TrainingOptions(system="seq2seq", seed=3, dropout=0.2)
    changed = Row.parse("ie.state.seed1").options(training, "out/ie.state.seed1")
    assert changed == replace(
        training, system="ie", prediction_vector="state", seed=1, output_dir="out/ie.state.seed1"
    )
    assert Row.parse("ie").options(training, "out/ie").seed == 3


@pytest.mark.parametrize(
    "name", ["ie.other", "ie.seed", "ie.seed01", "ie.seed1.state", "ie.state.state", "ie.seed1.seed2"]
)
def test_what_is_no_row_is_refused(name):
    with pytest.raises(ValueError, match="is no row of a comparison.*variants: state"):
        Row.parse(name)


def test_rows_of_a_comparison():
    assert [row.name for row in ComparisonOptions().rows] == list(SYSTEMS)
    assert [row.name for row in ComparisonOptions("ie, seq2seq").rows] == ["ie", "seq2seq"]
    paper = [row.name for row in ComparisonOptions("paper,ie.state,ie-copy-tails").rows]
    assert paper[:2] == ["seq2seq", "hlstm"] and paper[7:] == ["ie-msa-ca", "ie.state", "ie-copy-tails"]
    for names, message in (
        ("ie,gpt", "There is no system `gpt`"),
        (" ,", "nothing to compare"),
        ("paper,ie", "twice"),
    ):
        with pytest.raises(ValueError, match=message):
            ComparisonOptions(names)
