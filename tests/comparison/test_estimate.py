"""How much of a comparison is done and what is left, from what rows have taken so far."""

import pytest

from hf_storyend.comparison.estimate import RowProgress, estimate, relative_cost
from hf_storyend.systems import SYSTEMS


def test_nothing_is_known_before_anything_was_measured():
    state = estimate({"a": RowProgress(1.0), "b": RowProgress(2.0)})
    assert (state.done, state.seconds_left) == (0, None) and "not known yet" in str(state)


def test_rows_that_have_not_begun_take_as_long_as_others_by_cost():
    rows = {"a": RowProgress(1.0, 1.0, 600.0, 60.0), "b": RowProgress(2.0), "c": RowProgress(1.0, 0.5, 900.0)}
    # A unit of cost took 1,500 s / 1.5; b takes two units, c goes on at its own pace; two evaluations are left.
    state = estimate(rows)
    assert state.seconds_left == pytest.approx(2000 + 900 + 2 * 60) and state.done == pytest.approx(1.5 / 4)
    assert str(state) == "38 % of the comparison, about 50 minutes left"


def test_a_time_limit_is_what_a_row_takes():
    state = estimate({"a": RowProgress(1.0), "b": RowProgress(2.0, 0.75, 1.0)}, max_minutes=60)
    assert state.seconds_left == pytest.approx(3600 + 900)
    assert str(estimate({"a": RowProgress(1.0)}, 600)).endswith("about 10.0 hours left")


def test_nothing_is_left_of_finished_rows():
    assert estimate({"a": RowProgress(1.0, 1.0, 600.0, 60.0)}).seconds_left == 0


def test_what_costs_more_is_known_of_every_system():
    costs = {name: relative_cost(system) for name, system in SYSTEMS.items()}
    assert costs["seq2seq"] == 1 < costs["ie"] < costs["ie-msa-ga"] < costs["ie-msa-ca"] < costs["ie-msa-ca-copy"]
